import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PIPELINE_COLUMNS } from "../../src/meta-store/postgres/pipeline-row.ts";
import {
  createPipeline,
  errorsOf,
  expectProblem,
  LEASE_MS,
  runTo,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

let api: TestApi;
const ids: Record<string, string> = {};
beforeAll(async () => {
  api = await startTestApi();
  ids["film_a"] = await createPipeline(api, "film_a");
  ids["film_b"] = await createPipeline(api, "film_b", { enabled: false });
  ids["film%"] = await createPipeline(api, "filmography", { target_table: "analytics.film_a" });
  ids["genre"] = await createPipeline(api, "Genre", { mode: "incremental", incremental_key: "id" });
  await runTo(api, ids["film_a"], { kind: "failed", mayPass: false, code: "SOURCE_QUERY_FAILED", error: "No." });
  await runTo(api, ids["genre"], { kind: "succeeded" });
  await runTo(api, ids["film_a"], { kind: "paused" });
});
afterAll(() => api.stop());

const names = async (query: string): Promise<string[]> => {
  const { status, body, text } = await api.get(`/api/v1/pipelines${query}`);
  expect(status, text).toBe(200);
  return body.items.map(({ name }: { name: string }) => name);
};

/** All pages, one item each. */
async function pages(path: string): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let after = ""; ; ) {
    const { body } = await api.get(`${path}${path.includes("?") ? "&" : "?"}limit=1${after}`);
    items.push(...body.items);
    if (body.next === null) return items;
    after = `&after=${encodeURIComponent(body.next)}`;
  }
}

describe("the list of pipelines", () => {
  it.each([
    ["", ["Genre", "film_a", "film_b", "filmography"]],
    ["?status=PAUSED", ["film_a"]],
    ["?enabled=false", ["film_b"]],
    ["?enabled=true&mode=full", ["film_a", "filmography"]],
    ["?mode=incremental", ["Genre"]],
    ["?name=film_", ["film_a", "film_b"]],
    ["?name=film%25", []],
    ["?name=", ["Genre", "film_a", "film_b", "filmography"]],
    ["?target_table=analytics.film_a", ["film_a", "filmography"]],
    ["?status=FAILED&name=film", []],
  ])("R3.6 filters by %s", async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  it("R3.6 pages through a filtered list without losing or repeating", async () => {
    expect((await pages("/pipelines?name=film")).map(({ name }) => name)).toEqual(["film_a", "film_b", "filmography"]);
  });

  it.each([
    ["status=RUNING", "/status"],
    ["enabled=1", "/enabled"],
    ["mode=half", "/mode"],
    ["after=%20", "/after"],
    ["after=a%2Fb", "/after"],
    ["after=", "/after"],
    ["limit=0", "/limit"],
    ["colour=red", "/colour"],
  ])("refuses %s, pointing at it", async (query, pointer) => {
    const answer = await api.get(`/pipelines?${query}`);
    expectProblem(answer, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(answer))).toEqual([pointer]);
  });
});

describe("the list of runs", () => {
  const statuses = async (path: string): Promise<unknown[]> => {
    const { status, body, text } = await api.get(path);
    expect(status, text).toBe(200);
    return body.items.map((run: Record<string, unknown>) => [run["pipeline_name"], run["status"]]);
  };

  it("R3.6 shows the runs of all pipelines, newest first, in pages", async () => {
    const all = [
      ["film_a", "PAUSED"],
      ["Genre", "SUCCESS"],
      ["film_a", "FAILED"],
    ];
    expect(await statuses("/api/v1/runs")).toEqual(all);
    expect((await pages("/runs")).map((run) => [run["pipeline_name"], run["status"]])).toEqual(all);
  });

  it("R3.6 filters by status, trigger, request and time", async () => {
    expect(await statuses("/runs?status=FAILED")).toEqual([["film_a", "FAILED"]]);
    expect(await statuses("/runs?trigger=schedule")).toEqual([]);
    expect(await statuses("/pipelines/film_a/runs?trigger=api&status=PAUSED")).toEqual([["film_a", "PAUSED"]]);
    expect(await statuses("/pipelines/film_a/runs?run_request=1")).toEqual([["film_a", "FAILED"]]);
    const [, middle] = (await api.get("/runs")).body.items;
    expect(await statuses(`/runs?started_before=${middle.started_at}`)).toEqual([["film_a", "FAILED"]]);
    expect(await statuses("/runs?started_after=2100-01-01T00:00:00%2B03:00")).toEqual([]);
    expect(await statuses("/runs?started_after=2000-01-01T00:00:00Z")).toHaveLength(3);
  });

  it.each([
    ["status=IDLE", "/status"],
    ["trigger=me", "/trigger"],
    ["started_after=yesterday", "/started_after"],
    ["started_before=2024-01-01", "/started_before"],
    [`after=${randomUUID()}`, "/after"],
    ["after=1.x", "/after"],
    ["run_request=1", "/run_request"],
  ])("refuses %s, pointing at it", async (query, pointer) => {
    const answer = await api.get(`/runs?${query}`);
    expectProblem(answer, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(answer))).toEqual([pointer]);
  });

  it("keeps its place when runs of the same microsecond lie around it", async () => {
    const id = await createPipeline(api, "same_time");
    const claims = [];
    for (let run = 0; run < 5; run++) claims.push(await runTo(api, id, { kind: "succeeded" }));
    await api.database.query(
      "UPDATE etl.etl_runs SET started_at = '2024-01-01 00:00:00.123457+00', finished_at = now() WHERE pipeline_id = $1",
      [id],
    );
    const seen = (await pages(`/pipelines/${id}/runs`)).map((run) => run["id"]);
    expect(seen.sort()).toEqual(claims.map(({ runId }) => runId as string).sort());
  });
});

describe("ten thousand pipelines", () => {
  let many: TestApi;
  beforeAll(async () => {
    many = await startTestApi();
    await many.database.query(`
      INSERT INTO etl.etl_pipelines (name, source_query, target_table, status, run_requested_at, run_trigger)
      SELECT 'p_' || n, 'SELECT 1', 'analytics.p', CASE WHEN n % 1000 = 0 THEN 'RUN_REQUESTED' WHEN n % 999 = 0 THEN 'FAILED' ELSE 'IDLE' END,
             now(), 'api' FROM generate_series(1, 10000) n;
      INSERT INTO etl.etl_runs (pipeline_id, attempt, status, trigger, config_version, runner_id, lease_epoch, started_at, finished_at,
                                error, error_code)
      SELECT p.id, 1, CASE WHEN n = 3 AND p.name LIKE '%99' THEN 'FAILED' ELSE 'SUCCESS' END, 'api', 1, p.id, n,
             now() - n * interval '1 hour', now(), CASE WHEN n = 3 AND p.name LIKE '%99' THEN 'no' END,
             CASE WHEN n = 3 AND p.name LIKE '%99' THEN 'X' END
        FROM etl.etl_pipelines p, generate_series(1, 5) n;
      INSERT INTO etl.etl_runs (pipeline_id, kind, attempt, status, trigger, config_version, runner_id, lease_epoch, finished_at,
                                requested_by, requested_at, verdict, report)
      SELECT id, 'reconcile', 1, 'SUCCESS', 'api', 1, id, 1, now(), 'me', now(), 'MATCH', '{}' FROM etl.etl_pipelines;
      ANALYZE etl.etl_pipelines, etl.etl_runs`);
  });
  afterAll(() => many.stop());

  const newest = "ORDER BY r.started_at DESC, r.id DESC LIMIT 51";
  it.each([
    [
      "a page of pipelines",
      `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p WHERE p.name COLLATE "C" > 'p_5' ORDER BY p.name COLLATE "C" LIMIT 51`,
      "etl_pipelines_by_name",
    ],
    [
      "pipelines by how their name begins",
      `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p WHERE starts_with(p.name COLLATE "C", 'p_77') ORDER BY p.name COLLATE "C" LIMIT 51`,
      "etl_pipelines_by_name",
    ],
    [
      "failed pipelines",
      `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p WHERE p.status = 'FAILED' ORDER BY p.name COLLATE "C" LIMIT 51`,
      "etl_pipelines_stopped",
    ],
    [
      "waiting pipelines",
      `SELECT id FROM etl.etl_pipelines WHERE enabled AND status = 'RUN_REQUESTED'
        ORDER BY run_requested_at, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`,
      "etl_pipelines_waiting",
    ],
    ["the newest runs", `SELECT r.* FROM etl.etl_runs r ${newest}`, "etl_runs_newest_of_all"],
    ["failed runs", `SELECT r.* FROM etl.etl_runs r WHERE r.status = 'FAILED' ${newest}`, "etl_runs_newest_stopped"],
    [
      "the runs of one pipeline",
      `SELECT r.* FROM etl.etl_runs r WHERE r.pipeline_id = '${randomUUID()}' ${newest}`,
      "etl_runs_newest",
    ],
    [
      "the reconciles of one pipeline",
      `SELECT r.* FROM etl.etl_runs r WHERE r.pipeline_id = '${randomUUID()}' AND r.kind = 'reconcile' ${newest}`,
      "etl_runs_other_kinds",
    ],
    [
      "the reconciles of all pipelines",
      `SELECT r.* FROM etl.etl_runs r WHERE r.kind = 'reconcile' ${newest}`,
      "etl_runs_other_kinds_of_all",
    ],
    [
      "pipelines that changed",
      "SELECT id FROM etl.etl_pipelines WHERE changed_xid >= '99999999' ORDER BY changed_xid LIMIT 1001",
      "etl_pipelines_changed",
    ],
  ])("are found through an index: %s", async (_, statement, index) => {
    const plan = JSON.stringify(await many.database.query(`EXPLAIN (FORMAT JSON) ${statement}`));
    expect(plan).toContain(`"Index Name":"${index}"`);
  });

  it("are all reached page by page, and each is claimed once", async () => {
    let count = 0;
    for (let after = ""; ; ) {
      const { body } = await many.get(`/pipelines?limit=200${after}`);
      count += body.items.length;
      if (body.next === null) break;
      after = `&after=${body.next}`;
    }
    expect(count).toBe(10_000);
    const claimed = await Promise.all(
      Array.from({ length: 12 }, () => many.store.queue.claimNext(randomUUID(), LEASE_MS)),
    );
    const taken = claimed.flatMap((claim) => claim?.pipeline.id ?? []);
    expect(new Set(taken).size).toBe(10);
    expect(taken).toHaveLength(10);
  });
});
