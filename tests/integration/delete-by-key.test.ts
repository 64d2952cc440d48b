import { randomUUID } from "node:crypto";
import { trace } from "@opentelemetry/api";
import pg from "pg";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, inject, it, vi } from "vitest";
import { openPostgresSink } from "../../src/connectors/postgres/sink.ts";
import { batchOfRows } from "../../src/connectors/row-batch.ts";
import type { BatchResult, SinkRequest, SinkWriter, TargetKey } from "../../src/connectors/sink.ts";
import type { BatchFacts } from "../../src/data-plane/commit.ts";
import { writeBatch } from "../../src/data-plane/execute-batch.ts";
import type { Load } from "../../src/data-plane/run-context.ts";
import { RunReport } from "../../src/data-plane/run-report.ts";
import type { Column, Row } from "../../src/domain/row.ts";
import { RunLogs } from "../../src/observability/run-logs.ts";
import { createRunnerMetrics } from "../../src/observability/runner-metrics.ts";
import { createClaimed } from "../conformance/meta-store-contract.ts";
import { seededRandom } from "../support/chaos-random.ts";
import { commitBegin, commitRows } from "../support/commit.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { recordingLog } from "../support/recording-log.ts";
import { runs } from "../support/seed.ts";

/** What only a table knows of deletes by key: types, constraints, triggers, rights; and what the engine makes of them. */
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
});
afterAll(() => database.drop());

const newName = (): string => `k_${randomUUID().slice(0, 8)}`;

async function createTable(definition: string, rows = "", grants = "ALL"): Promise<string> {
  const table = newName();
  await database.query(`CREATE TABLE analytics.${table} (${definition}); ${rows.replaceAll("TABLE", `analytics.${table}`)};
    REVOKE ALL ON analytics.${table} FROM vitrina_writer; GRANT ${grants} ON analytics.${table} TO vitrina_writer`);
  return table;
}

function open(
  table: string,
  columns: readonly Column[],
  more: Partial<Pick<SinkRequest, "load">> = {},
): Promise<SinkWriter> {
  const sink = openPostgresSink({
    url: database.urls.writer,
    loaderUrl: undefined,
    applicationName: "vitrina test",
    lockTimeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    statementTimeoutMs: 20_000,
  });
  return sink.open({
    target: { kind: "postgres", schema: "analytics", table },
    columns,
    key: [],
    createTarget: false,
    addColumns: false,
    load: { kind: "upsert", deletes: true },
    options: {},
    claim: { pipelineId: randomUUID(), runId: randomUUID(), epoch: 1, decidedEpoch: 0, batchNo: 0 },
    isMetaStore: async () => true,
    lost: new AbortController().signal,
    cancelled: new AbortController().signal,
    requireLease: async () => undefined,
    ...more,
  });
}

async function follow(
  table: string,
  columns: readonly Column[],
  rows: readonly Row[],
  keys: readonly TargetKey[],
): Promise<BatchResult> {
  const writer = await open(table, columns);
  try {
    await commitBegin(writer);
    return await commitRows(writer, rows, undefined, undefined, keys);
  } finally {
    await writer.close();
  }
}

const contentOf = async (table: string): Promise<unknown[]> =>
  (await database.query(`SELECT t::text FROM analytics.${table} AS t ORDER BY 1`)).map(({ t }) => t);

const ID: Column = { name: "id", type: "bigint" };
const TITLE: Column = { name: "title", type: "text" };

it("takes for one key what the target takes for one, however it is written", async () => {
  const columns = [{ name: "n", type: "numeric" }, TITLE];
  const table = await createTable(
    "n numeric PRIMARY KEY, title text",
    "INSERT INTO TABLE VALUES (1.0, 'a'), (2.00, 'b'), (3, 'c'), (4, 'd')",
  );
  const result = await follow(table, columns, [["1", "new"]], [["1.000"], ["2"], ["2.0"], ["3.0"], ["NaN"]]);
  expect(result).toMatchObject({ rows_written: 1, rows_deleted: 2 });
  expect(await contentOf(table)).toEqual(["(1,new)", "(4,d)"]);
  // The same where a row is refused, and the keys of all are looked at one by one.
  const refused = await follow(table, columns, [["4.00", "nul \0"]], [["4"], ["1.0"]]);
  expect(refused).toMatchObject({ rows_deleted: 1, rejects: [{ row: ["4.00", "nul \0"] }] });
  expect(await contentOf(table)).toEqual(["(4,d)"]);
});

it("never deletes by a key that the target would have to cut or round", async () => {
  const columns = [{ name: "code", type: "text" }, { name: "n", type: "bigint" }, TITLE];
  const table = await createTable(
    "code varchar(3), n integer, title text, PRIMARY KEY (code, n)",
    "INSERT INTO TABLE VALUES ('abc', 1, 'a'), ('abc', 2, 'b'), ('d', 1, 'c')",
  );
  const misfits = [
    ["abcd", "1"],
    ["abc", "1.4"],
    ["abc", "9999999999"],
    ["abc ", "1"],
  ];
  expect(await follow(table, columns, [], misfits)).toMatchObject({ rows_deleted: 0 });
  // Each by itself, too: one that cannot even be read makes all of them be looked at one by one.
  for (const one of misfits) expect(await follow(table, columns, [], [one])).toMatchObject({ rows_deleted: 0 });
  expect(await follow(table, columns, [], [...misfits, ["abc", "2"]])).toMatchObject({ rows_deleted: 1 });
  expect(await contentOf(table)).toEqual(["(abc,1,a)", "(d,1,c)"]);
});

it("deletes before it writes: a row may have taken over what must be unique", async () => {
  const definition = "id bigint PRIMARY KEY, title text UNIQUE CHECK (title <> 'bad')";
  const table = await createTable(definition, "INSERT INTO TABLE VALUES (1, 'x'), (2, 'y'), (3, 'z')");
  expect(await follow(table, [ID, TITLE], [["9", "x"]], [["1"], ["9"]])).toMatchObject({
    rows_deleted: 1,
    rejects: [],
  });
  expect(await contentOf(table)).toEqual(["(2,y)", "(3,z)", "(9,x)"]);
  const second = [
    ["8", "y"],
    ["3", "bad"],
  ];
  const result = await follow(table, [ID, TITLE], second, [["2"], ["3"], ["8"]]);
  expect(result).toMatchObject({ rows_written: 1, rows_deleted: 1, rejects: [{ row: ["3", "bad"] }] });
  expect(await contentOf(table)).toEqual(["(3,z)", "(8,y)", "(9,x)"]);
});

it("a trigger that keeps a row from being deleted fails the batch, and nothing of it stays", async () => {
  const table = await createTable(
    "id bigint PRIMARY KEY, title text",
    "INSERT INTO TABLE SELECT n, 'old' FROM generate_series(1, 5) n",
  );
  await database.query(`CREATE FUNCTION analytics.${table}() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF OLD.id = 3 THEN RETURN NULL; END IF; RETURN OLD; END';
    CREATE TRIGGER refuse BEFORE DELETE ON analytics.${table} FOR EACH ROW EXECUTE FUNCTION analytics.${table}()`);
  const batch = [["1", "new"]];
  await expect(follow(table, [ID, TITLE], batch, [["1"], ["2"], ["3"]])).rejects.toMatchObject({
    code: "ROWS_LEFT_OUT",
    message: expect.stringContaining("1 row is still there after deleting"),
  });
  expect(await contentOf(table)).toEqual(["(1,old)", "(2,old)", "(3,old)", "(4,old)", "(5,old)"]);
  expect(await follow(table, [ID, TITLE], batch, [["1"], ["2"], ["7"]])).toMatchObject({ rows_deleted: 1 });
});

it("a row that another table still refers to fails the batch with a sentence", async () => {
  const table = await createTable("id bigint PRIMARY KEY, title text", "INSERT INTO TABLE VALUES (1, 'a'), (2, 'b')");
  await database.query(`CREATE TABLE analytics.${table}_of (id bigint REFERENCES analytics.${table});
    INSERT INTO analytics.${table}_of VALUES (2)`);
  await expect(follow(table, [ID, TITLE], [], [["1"], ["2"]])).rejects.toMatchObject({ code: "ROW_REFUSED" });
  expect(await contentOf(table)).toEqual(["(1,a)", "(2,b)"]);
});

it("R4.4 a writer that is killed before its commit has deleted nothing", async () => {
  const table = await createTable("id bigint PRIMARY KEY, title text", "INSERT INTO TABLE VALUES (1, 'a'), (2, 'b')");
  const writer = await open(table, [ID, TITLE]);
  const place = { batchNo: 1, after: null, upTo: null };
  const written = await writer.write(batchOfRows([["1", "new"]]), place, false, [["1"], ["2"]]);
  expect(written.result).toMatchObject({ rows_written: 1, rows_deleted: 1 });
  await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle in transaction' AND usename = 'vitrina_writer'`);
  await expect(written.commit()).rejects.toThrow();
  await writer.close();
  expect(await contentOf(table)).toEqual(["(1,a)", "(2,b)"]);
});

it("needs the right to delete, and only where it may have to", async () => {
  const table = await createTable("id bigint PRIMARY KEY, title text", "", "SELECT, INSERT, UPDATE");
  await expect(open(table, [ID, TITLE])).rejects.toMatchObject({
    code: "PERMISSION_DENIED",
    message: expect.stringContaining("lacks DELETE"),
  });
  const writer = await open(table, [ID, TITLE], { load: { kind: "upsert" } });
  expect(writer.deletesRows).toBe(false);
  await expect(commitRows(writer, [], undefined, undefined, [["1"]])).rejects.toMatchObject({ code: "INTERNAL" });
  await writer.close();
});

it("takes a handful of statements for 5,000 keys, and finds them by the index; none for keys that are all there", async () => {
  const table = await createTable(
    "id bigint PRIMARY KEY, title text",
    "INSERT INTO TABLE SELECT n, 'old' FROM generate_series(1, 100000) n",
  );
  await database.query(`ANALYZE analytics.${table}`);
  const writer = await open(table, [ID, TITLE]);
  const rows = Array.from({ length: 2500 }, (_, n): Row => [String(n * 40 + 1), "new"]);
  const present = rows.map(([id]) => [id as string]);
  const gone = present.map(([id]) => [String(Number(id) + 7)]);
  const scans = async () => {
    await database.query("SELECT pg_stat_force_next_flush()");
    const [found] = await database.query(
      "SELECT seq_tup_read::int AS read FROM pg_stat_user_tables WHERE relid = to_regclass($1)",
      [`analytics.${table}`],
    );
    return found?.["read"] as number;
  };
  const statements = async (keys: readonly TargetKey[]) => {
    const spy = vi.spyOn(pg.Client.prototype, "query");
    const result = await commitRows(writer, rows, undefined, undefined, keys);
    const count = spy.mock.calls.length;
    spy.mockRestore();
    return { ...result, count };
  };
  await statements([]); // the first batch also asks whether the target is empty
  const plain = await statements([]);
  expect(await statements(present)).toMatchObject({ rows_deleted: 0, count: plain.count });
  const deleting = await statements([...present, ...gone]);
  expect(deleting).toMatchObject({ rows_unchanged: 2500, rows_deleted: 2500 });
  expect(deleting.count - plain.count).toBeLessThan(8);
  await writer.close();
  expect(await scans()).toBeLessThan(10);
  expect(await database.query(`SELECT count(*)::int AS n FROM analytics.${table}`)).toEqual([{ n: 97_500 }]);
});

it("agrees with a model, whatever comes: keys written otherwise, twice, refused, gone or never there", async () => {
  const { below: pick } = seededRandom();
  const columns = [{ name: "n", type: "numeric" }, TITLE];
  const table = await createTable("n numeric PRIMARY KEY, title text CHECK (title <> 'bad')");
  const writer = await open(table, columns);
  const model = new Map<number, string>();
  const textOf = (n: number): string => n.toFixed(pick(3));
  for (let batchNo = 1; batchNo <= runs(60); batchNo++) {
    const given = Array.from({ length: pick(8) }, () => ({
      n: pick(12),
      title: pick(5) === 0 ? "bad" : `title ${pick(3)}`,
    }));
    const asked = Array.from({ length: pick(12) }, () => pick(14));
    const doomed = new Set(asked.filter((n) => model.has(n) && given.every((one) => one.n !== n)));
    for (const n of doomed) model.delete(n);
    for (const { n, title } of given) if (title !== "bad") model.set(n, title);
    const rows = given.map(({ n, title }): Row => [textOf(n), title]);
    const place = { batchNo, after: null, upTo: null };
    const keys = [...asked.map((n) => [textOf(n)]), ...(pick(4) === 0 ? [["no number"]] : [])];
    const result = await commitRows(writer, rows, place, undefined, keys);
    expect(result).toMatchObject({ rows_deleted: doomed.size });
    const found = await database.query(`SELECT n::int, title FROM analytics.${table}`);
    expect(new Map(found.map(({ n, title }) => [n, title]))).toEqual(model);
  }
  await writer.close();
});

it("the engine records what a batch deleted with the batch, and counts it once, after the commit", async () => {
  const store = database.openStore();
  const table = await createTable(
    "id bigint PRIMARY KEY, title text CHECK (title <> 'bad')",
    "INSERT INTO TABLE SELECT n, 'old' FROM generate_series(1, 6) n",
  );
  const claim = await createClaimed(store, { target_table: `analytics.${table}` });
  const registry = new Registry();
  const log = recordingLog();
  const report = new RunReport(
    {
      log,
      runLogs: new RunLogs({ level: "silent", log, write: async () => undefined }),
      tracer: trace.getTracer("test"),
      observer: createRunnerMetrics(registry, { read: 1, write: 1 }),
    },
    claim,
  );
  const writer = await open(table, [ID, TITLE]);
  const limits = { batchSize: 10, maxRejects: 10, maxDeletePercent: 50 };
  const load = {
    pipeline: claim.pipeline,
    commit: store.batchCommit(claim),
    report,
    writer,
    fingerprint: "f",
    transform: { columns: [ID, TITLE] },
    read: { eachOnce: false },
    incremental: undefined,
    progress: { position: null, batchNo: 0, rejected: 0, limits, targetMark: { identity: "1" } },
  } as unknown as Load;
  const move = (rows: readonly Row[], keys: readonly TargetKey[]) => {
    const effort = () => ({ bytes: 0, read_ms: 0, transform_ms: 0, write_ms: 0 });
    const facts: BatchFacts = { read: rows.length, transformed: rows.length, position: null, effort, keys };
    const place = { batchNo: load.progress.batchNo + 1, after: null, upTo: null };
    return report.batch(() => writeBatch(load, batchOfRows(rows), place, facts));
  };
  const counted = async () => (await registry.getSingleMetric("vitrina_rows_deleted_total")?.get())?.values[0]?.value;
  const recorded = async () => (await store.runs.get(claim.pipeline.id, claim.runId)).rows_deleted;

  // A row is refused, so the batch is written twice; what it deletes counts once.
  expect(
    await move(
      [
        ["1", "new"],
        ["2", "bad"],
      ],
      [["1"], ["2"], ["3"]],
    ),
  ).toMatchObject({ rowsDeleted: 1 });
  expect([await counted(), await recorded(), load.progress.targetMark?.filled]).toEqual([1, 1, true]);
  expect(await contentOf(table)).toEqual(["(1,new)", "(2,old)", "(4,old)", "(5,old)", "(6,old)"]);
  await move([], [["1"], ["2"], ["4"], ["5"], ["6"]]);
  expect([await counted(), await recorded(), load.progress.targetMark?.filled]).toEqual([6, 6, false]);
  expect(log.entries.at(-1)).toMatchObject({ message: "batch committed", fields: { rows_read: 0, rows_deleted: 5 } });
  // Without the lease nothing is deleted, and nothing is counted.
  await move([["1", "again"]], [["1"]]);
  await database.query("UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp() WHERE id = $1", [claim.runId]);
  await expect(move([], [["1"]])).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect([await counted(), await contentOf(table)]).toEqual([6, ["(1,again)"]]);
  await writer.close();
});
