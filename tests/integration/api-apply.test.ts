import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Answer,
  createPipeline,
  errorsOf,
  expectProblem,
  pipelineBody,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ SOURCE_AWAY_URL: "postgres://nobody:x@127.0.0.1:1/away" });
});
afterAll(() => api.stop());

const placesOf = (answer: Answer): string[] => Object.keys(errorsOf(answer)).sort();
/** Its sentence quotes the source, SQLSTATE and all, as validate does. */
const expectInvalid = (answer: Answer): void =>
  expect(answer).toMatchObject({ status: 422, body: { code: "INVALID_REQUEST" } });

const MISSING = "SELECT id FROM content.no_such_table";
const names = async (): Promise<string[]> =>
  (await api.get("/pipelines?limit=200")).body.items.map(({ name }: { name: string }) => name);

describe("saving judges as validate does", () => {
  it("refuses a query that its source cannot plan, and stores nothing", async () => {
    const refused = await api.post("/pipelines", pipelineBody("unplanned", { source_query: MISSING }));
    expectInvalid(refused);
    expect(placesOf(refused)).toEqual(["/source_query"]);
    expect(await names()).not.toContain("unplanned");
    const validated = await api.post("/validate", pipelineBody("unplanned", { source_query: MISSING }));
    expect(refused.body.errors.map(({ message }: { message: string }) => message)).toEqual(
      validated.body.problems
        .filter(({ pointer }: { pointer: string }) => pointer === "/source_query")
        .map(({ message }: { message: string }) => message),
    );
    const id = await createPipeline(api, "planned");
    expectInvalid(await api.patch(`/pipelines/${id}`, { source_query: MISSING }));
    expect((await api.get(`/pipelines/${id}`)).body).toMatchObject({
      source_query: "SELECT 1 AS id",
      config_version: 1,
    });
  });

  it("saves although the source is away or unknown, and says that the query was not checked", async () => {
    for (const source_connection of ["away", "unknown"]) {
      const body = pipelineBody(`on_${source_connection}`, { source_connection, source_query: MISSING });
      const saved = await api.post("/pipelines", body);
      expect(saved).toMatchObject({
        status: 201,
        body: { warnings: [{ severity: "warning", message: expect.stringMatching(/^The query was not checked\. /) }] },
      });
      expect((await api.get(`/pipelines/on_${source_connection}`)).body).not.toHaveProperty("warnings");
    }
    const refused = pipelineBody("worse", { source_connection: "away", source_query: "DELETE FROM content.film" });
    expectProblem(await api.post("/pipelines", refused), "INVALID_REQUEST");
  });

  it("asks the source by a few sessions, however many save at once", async () => {
    await api.database.query(`CREATE SCHEMA IF NOT EXISTS content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
      CREATE TABLE content.locked (id int); GRANT SELECT ON content.locked TO vitrina_reader`);
    const asking = async (): Promise<number> => {
      const [row] = await api.database.query(
        `SELECT count(*)::int AS sessions FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'vitrina api inspect'`,
      );
      return row?.["sessions"] as number;
    };
    const release = await holdLock(api.database.url, "LOCK TABLE content.locked IN ACCESS EXCLUSIVE MODE");
    const saving = Array.from({ length: 12 }, (_, n) =>
      api.post("/pipelines", pipelineBody(`crowd_${n}`, { source_query: "SELECT id FROM content.locked" })),
    );
    await until("four sessions ask", async () => (await asking()) >= 4);
    // Meanwhile the others would have come to it, too.
    for (let looks = 0; looks < 30; looks += 1) {
      expect((await api.get("/health")).status).toBe(200);
      expect(await asking()).toBeLessThanOrEqual(4);
    }
    await release();
    for (const saved of await Promise.all(saving)) expect(saved.status, saved.text).toBe(201);
    await until("all sessions are closed", async () => (await asking()) === 0);
  });

  it("names the tables whose changes an incremental pipeline does not see", async () => {
    await api.database.query(`CREATE SCHEMA IF NOT EXISTS content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
      CREATE TABLE content.seen (id int, modified timestamptz);
      CREATE TABLE content.unseen (id int, label text);
      GRANT SELECT ON content.seen, content.unseen TO vitrina_reader`);
    const joined = pipelineBody("joined", {
      source_query: "SELECT s.id, s.modified, u.label FROM content.seen s JOIN content.unseen u ON u.id = s.id",
      mode: "incremental",
      incremental_key: "modified",
      incremental_id_key: "id",
    });
    expect(await api.post("/apply", { pipelines: [joined] })).toMatchObject({
      status: 200,
      body: {
        pipelines: [{ warnings: [{ code: "CHANGES_UNSEEN", message: expect.stringContaining("content.unseen") }] }],
      },
    });
  });

  it("tells mistakes of form, target and query at once", async () => {
    const wrong = { batch_size: 0, target_table: "etl.etl_runs", source_query: MISSING, nonsense: 1 };
    const places = ["/batch_size", "/nonsense", "/source_query", "/target_table"];
    const created = await api.post("/pipelines", pipelineBody("wrong", wrong));
    expectInvalid(created);
    expect(placesOf(created)).toEqual(places);
    expect(placesOf(await api.post("/validate", pipelineBody("wrong", wrong)))).toEqual(places);
    const id = await createPipeline(api, "right");
    expect(placesOf(await api.patch(`/pipelines/${id}`, wrong))).toEqual(places);
    expect(placesOf(await api.post(`/pipelines/${id}/validate`, wrong))).toEqual(places);
    // What cannot be read is not judged a second time.
    expect(
      placesOf(await api.post("/pipelines", { name: "x", target_table: 7, source_query: "SELECT 1 AS id" })),
    ).toEqual(["/target_table"]);
  });
});

describe("POST /apply", () => {
  const entries = (name: string): Promise<unknown[]> =>
    api.database.query("SELECT action FROM etl.audit_log WHERE object_name = $1 AND outcome = 'done'", [name]);

  it("creates and changes in one transaction, and leaves what is not named as it is", async () => {
    await createPipeline(api, "applied_old", { batch_size: 50 });
    const pipelines = [{ name: "applied_old", description: "new words" }, pipelineBody("applied_new")];
    const first = await api.post("/api/v1/apply", { pipelines });
    expect(first.status, first.text).toBe(200);
    expect(first.body.pipelines).toMatchObject([
      { done: "changed", pipeline: { batch_size: 50, description: "new words", config_version: 2 }, warnings: [] },
      { done: "created", pipeline: { name: "applied_new", config_version: 1 } },
    ]);
    expect(await entries("applied_old")).toEqual([{ action: "createPipeline" }, { action: "applyPipelines" }]);
    expect(await entries("applied_new")).toEqual([{ action: "applyPipelines" }]);
    const again = await api.post("/apply", { pipelines });
    expect(again.body.pipelines.map(({ done }: { done: string }) => done)).toEqual(["unchanged", "unchanged"]);
    expect(await entries("applied_new")).toHaveLength(1);
  });

  it("does not ask a source again and again that does not answer", async () => {
    const pipelines = Array.from({ length: 6 }, (_, n) =>
      pipelineBody(`away_${n}`, { source_connection: "away", source_query: MISSING }),
    );
    const applied = await api.post("/apply", { pipelines });
    expect(applied.status, applied.text).toBe(200);
    const told = applied.body.pipelines.map(({ warnings: [warning] }: { warnings: { message: string }[] }) =>
      /did not answer for the pipelines before it/.test(warning?.message ?? ""),
    );
    expect(told).toEqual([false, false, false, true, true, true]);
  });

  it("changes nothing when one of them is refused, and points at every problem", async () => {
    const refused = await api.post("/apply", {
      pipelines: [
        pipelineBody("all_or_none"),
        pipelineBody("broken", { source_query: MISSING, max_rejects: -1 }),
        pipelineBody("all_or_none"),
        { name: "without_target" },
      ],
    });
    expectInvalid(refused);
    expect(placesOf(refused)).toEqual([
      "/pipelines/1/max_rejects",
      "/pipelines/1/source_query",
      "/pipelines/2/name",
      "/pipelines/3/source_query",
      "/pipelines/3/target_table",
    ]);
    expect(await names()).not.toContain("all_or_none");
  });

  it("changes nothing when one of them runs, and says which", async () => {
    const id = await createPipeline(api, "held");
    await api.post(`/pipelines/${id}/run`);
    await api.store.queue.claimNext("00000000-0000-0000-0000-000000000001", 60_000);
    const refused = await api.post("/apply", {
      pipelines: [pipelineBody("beside_held"), { name: "held", target_key: ["other"] }],
    });
    expectProblem(refused, "FIELD_LOCKED_WHILE_RUNNING");
    expect(placesOf(refused)).toEqual(["/pipelines/1/target_key"]);
    expect(await names()).not.toContain("beside_held");
  });
});
