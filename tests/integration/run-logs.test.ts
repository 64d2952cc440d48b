import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectProblem } from "../support/api-client.ts";
import { type ApiWithRunner, startApiWithRunner } from "../support/api-with-runner.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";

/** The logs that are kept with runs, of real runs, read through a real API. */

const ROW_VALUE = `canary${randomBytes(8).toString("hex")}`;
const ROWS = 250;
/** Even on a busy machine. */

interface Line {
  readonly id: number;
  readonly at: string;
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

let api: ApiWithRunner;
beforeAll(async () => {
  api = await startApiWithRunner({ LEASE_SECONDS: "3", RETRY_ATTEMPTS: "2", RETRY_BACKOFF_SECONDS: "0" });
  await api.database.query(
    `CREATE TABLE content.item AS SELECT n AS id, '${ROW_VALUE}' AS title FROM generate_series(1, ${ROWS}) n;
     ALTER TABLE content.item ADD PRIMARY KEY (id); ANALYZE content.item`,
  );
  await api.startRunner();
});
afterAll(() => api?.stop());

const ITEMS = { source_query: "SELECT id, title FROM content.item", batch_size: 100 };

/** Runs it, and returns the path of the run once it has ended. */
async function run(name: string): Promise<string> {
  const { body: requested } = await api.post(`/pipelines/${name}/run`);
  const status = `/pipelines/${name}/status?run_request=${requested.run_request}&wait=10s`;
  const ended = async () => {
    const { body } = await api.get(status);
    return body.over && `/pipelines/${name}/runs/${body.last_run.id}`;
  };
  return until(`${name} has run`, ended);
}

/** All of it, once its last line is there. */
function wholeLog(path: string, query = ""): Promise<Line[]> {
  return until("the log is over", async () => {
    const { body } = await api.get(`${path}/logs?limit=200&wait=60s${query}`);
    expect(body.next).toBeNull();
    return body.over ? body.items : undefined;
  });
}

const messagesOf = (lines: readonly Line[]): string[] => lines.map(({ message }) => message);

describe("R9 the log of a run", () => {
  it("tells of a run that succeeds from its start to its end, in order, with rows and timings", async () => {
    await api.create("good", ITEMS);
    const path = await run("good");
    const lines = await wholeLog(path);
    expect(messagesOf(lines)).toEqual([
      "run started",
      "load opened",
      "batch committed",
      "batch committed",
      "batch committed",
      "run ended",
    ]);
    expect(lines.map(({ level }) => level)).toEqual(lines.map(() => "info"));
    expect(lines.map(({ id }) => id)).toEqual(lines.map(({ id }) => id).sort((a, b) => a - b));
    const ms = expect.any(Number);
    expect(lines[0]?.fields).toMatchObject({ status: "RUNNING", trigger: "api", attempt: 1, config_version: 1 });
    expect(lines[4]?.fields).toMatchObject({ batch: 3, rows_read: 50, rows_written: 50, read_ms: ms, duration_ms: ms });
    expect(lines[5]?.fields).toMatchObject({
      outcome: "succeeded",
      status: "IDLE",
      batches: 3,
      rows_read: ROWS,
      rows_written: ROWS,
      duration_ms: ms,
    });
    const { body } = await api.get(path);
    const [first, last] = [Date.parse(lines[0]?.at as string), Date.parse(lines.at(-1)?.at as string)];
    expect(first).toBeGreaterThanOrEqual(Date.parse(body.started_at) - 1000);
    expect(last).toBeGreaterThanOrEqual(first);
  });

  it("has the reason of a run that fails, also when its attempts are runs of their own", async () => {
    await api.database.query(
      "CREATE TABLE content.nowhere (id int); GRANT SELECT ON content.nowhere TO vitrina_reader",
    );
    await api.create("no_table", { ...ITEMS, source_query: "SELECT id FROM content.nowhere" });
    await api.database.query("DROP TABLE content.nowhere");
    const failed = await wholeLog(await run("no_table"));
    const reason = failed.find(({ level }) => level === "error");
    expect(reason).toMatchObject({ message: "run failed", fields: { code: expect.any(String) } });
    expect(reason?.fields["error"]).toContain("nowhere");
    expect(failed.at(-1)).toMatchObject({ message: "run ended", fields: { outcome: "failed", status: "FAILED" } });

    await api.create("stuck", { ...ITEMS, retry_for_seconds: 0 });
    await run("stuck");
    const lock = await holdLock(api.database.url, "LOCK TABLE analytics.stuck IN ACCESS EXCLUSIVE MODE");
    await api.database.query("UPDATE content.item SET title = title || '!'");
    await api.post("/pipelines/stuck/run");
    const attempts = await until("two attempts have failed", async () => {
      const { body } = await api.get("/pipelines/stuck/runs?status=FAILED");
      return body.items.length === 2 && body.items;
    });
    await lock();
    const [last, first] = await Promise.all(
      attempts.map(({ id }: { id: string }) => wholeLog(`/pipelines/stuck/runs/${id}`)),
    );
    const retry = first.find(({ level }: Line) => level === "warn");
    expect(retry).toMatchObject({
      message: "attempt failed; trying again",
      fields: { code: "DATABASE_BUSY", attempt: 1, next_run_id: attempts[0].id },
    });
    expect(messagesOf(last)).toContain("run failed");
    expect(messagesOf(first)).not.toContain("run failed");
  });

  it("counts rejects, and has no values of rows", async () => {
    await api.database.query(
      `CREATE TABLE analytics.short (id int PRIMARY KEY, title varchar(3));
       GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.short TO vitrina_writer`,
    );
    const query = "SELECT id, CASE WHEN id <= 3 THEN title ELSE 'ok' END AS title FROM content.item";
    await api.create("short", { ...ITEMS, source_query: query, max_rejects: 10 });
    const lines = await wholeLog(await run("short"));
    const batches = lines.filter(({ message }) => message === "batch committed");
    expect(batches[0]?.fields).toMatchObject({ rows_read: 100, rows_written: 97, rows_rejected: 3 });

    await api.patch("/pipelines/short", { max_rejects: 0 });
    const refused = await wholeLog(await run("short"));
    expect(refused.find(({ level }) => level === "error")?.fields).toMatchObject({ code: "TOO_MANY_REJECTS" });
    expect(JSON.stringify([lines, refused])).not.toContain(ROW_VALUE);
  });

  it("is read in pages, by level, and from any line on", async () => {
    const path = (await api.get("/pipelines/no_table/runs")).body.items[0].id;
    const log = `/pipelines/no_table/runs/${path}/logs`;
    const all: Line[] = (await api.get(log)).body.items;
    const pages: Line[] = [];
    for (let after: string | null = "0"; after !== null; ) {
      const { body } = await api.get(`${log}?limit=1&after=${after}`);
      pages.push(...body.items);
      after = body.next;
    }
    expect(pages).toEqual(all);
    expect((await api.get(`${log}?level=warn`)).body.items).toEqual(all.filter(({ level }) => level === "error"));
    expect((await api.get(`${log}?after=${all[0]?.id}`)).body.items).toEqual(all.slice(1));
  });

  it("refuses what makes no sense", async () => {
    const runs = (await api.get("/pipelines/good/runs")).body.items;
    expectProblem(await api.get("/pipelines/good/runs/nothing/logs"), "RUN_NOT_FOUND");
    expectProblem(await api.get(`/pipelines/short/runs/${runs[0].id}/logs`), "RUN_NOT_FOUND");
    for (const query of ["after=x", "level=loud", "wait=2h", "limit=0"]) {
      expectProblem(await api.get(`/pipelines/good/runs/${runs[0].id}/logs?${query}`), "INVALID_REQUEST");
    }
  });

  it("keeps the beginning and the end of a long log, and says what it left out", async () => {
    await api.database.query("CREATE TABLE content.many AS SELECT n AS id FROM generate_series(1, 1150) n");
    await api.create("many", { source_query: "SELECT id FROM content.many", target_key: ["id"], batch_size: 1 });
    const path = await run("many");
    await until("the last line is there", async () => {
      const { body } = await api.get(`${path}/logs?after=0&limit=1`);
      return body.over;
    });
    const lines: Line[] = [];
    for (let after: string | null = "0"; after !== null; ) {
      const { body } = await api.get(`${path}/logs?limit=200&after=${after}`);
      lines.push(...body.items);
      after = body.next;
    }
    // 1000 first ones, the notice, the count, 100 last ones.
    expect(lines).toHaveLength(1102);
    expect(lines[999]?.fields["batch"]).toBe(998);
    expect(lines[1000]).toMatchObject({ level: "warn", message: expect.stringContaining("log of this run is full") });
    expect(lines[1001]).toMatchObject({ message: "lines were left out here", fields: { lines: 1153 - 1100 } });
    expect(lines[1002]?.fields["batch"]).toBe(1150 - 99 + 1);
    expect(lines.at(-1)).toMatchObject({ message: "run ended", fields: { batches: 1150 } });
  });

  it("goes with its run", async () => {
    const id = await api.create("gone", ITEMS);
    await wholeLog(await run("gone"));
    const count = "SELECT count(*)::int AS lines FROM etl.etl_run_logs l JOIN etl.etl_runs r ON r.id = l.run_id";
    const [before] = await api.database.query(`${count} WHERE r.pipeline_id = $1`, [id]);
    expect(before?.["lines"]).toBeGreaterThan(4);
    expect((await api.delete("/pipelines/gone")).status).toBe(204);
    const orphans =
      "SELECT FROM etl.etl_run_logs l WHERE NOT EXISTS (SELECT FROM etl.etl_runs r WHERE r.id = l.run_id)";
    expect(await api.database.query(orphans)).toEqual([]);
  });
});
