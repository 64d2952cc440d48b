import { randomBytes, randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { openPostgresSink } from "../../src/connectors/postgres/sink.ts";
import type { BatchResult, KeptPosition, SinkRequest, SinkWriter } from "../../src/connectors/sink.ts";
import type { Row } from "../../src/domain/row.ts";
import { commitBegin, commitRows } from "../support/commit.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { formatTarget } from "../support/targets.ts";
import { describeSink } from "./sink-contract.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
});
afterAll(() => database.drop());

const openSink = () =>
  openPostgresSink({
    url: database.urls.writer,
    loaderUrl: undefined,
    applicationName: "vitrina test",
    lockTimeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    statementTimeoutMs: 20_000,
  });

describeSink("postgres", () => ({
  sink: openSink(),
  newTarget: () => ({ kind: "postgres", schema: "analytics", table: `t_${randomUUID().slice(0, 8)}` }),
  async titles(target) {
    const label = formatTarget(target);
    const [found] = await database.query("SELECT to_regclass($1) IS NOT NULL AS exists", [label]);
    if (found?.["exists"] !== true) return undefined;
    const rows = await database.query(`SELECT id::text, title FROM ${label} ORDER BY id`);
    return new Map(rows.map(({ id, title }) => [id as string, title as string | null]));
  },
  async columns(target) {
    const rows = await database.query(
      'SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 ORDER BY attname COLLATE "C"',
      [formatTarget(target)],
    );
    return rows.map(({ attname }) => attname as string);
  },
}));

it("a position beside the data is given up for good when a person has changed the state since", async () => {
  const pipelineId = randomUUID();
  const open = (epoch: number, decidedEpoch: number): Promise<SinkWriter> =>
    openSink().open({
      target: { kind: "postgres", schema: "analytics", table: `t_${pipelineId.slice(0, 8)}` },
      columns: [{ name: "id", type: "bigint" }],
      key: ["id"],
      createTarget: true,
      addColumns: false,
      load: { kind: "upsert" },
      options: {},
      claim: { pipelineId, runId: randomUUID(), epoch, decidedEpoch, batchNo: 0 },
      isMetaStore: async () => false,
      lost: new AbortController().signal,
      cancelled: new AbortController().signal,
      requireLease: async () => undefined,
    });
  const found = async (epoch: number, decidedEpoch: number): Promise<KeptPosition | undefined> => {
    const writer = await open(epoch, decidedEpoch);
    await writer.close();
    return writer.commits.kept?.found;
  };
  const reached = (batchNo: number): KeptPosition => ({
    batchNo,
    position: [`${batchNo}`],
    fingerprint: "f",
    safePoint: "s",
  });
  const record = async (epoch: number, decidedEpoch: number, position: KeptPosition): Promise<void> => {
    const writer = await open(epoch, decidedEpoch);
    await commitBegin(writer);
    await commitRows(writer, [["1"]], undefined, async ({ transaction }) => {
      if (transaction !== undefined) await writer.commits.kept?.recordIn(transaction, position);
    });
    await writer.close();
  };

  await record(1, 0, reached(1));
  expect(await found(2, 0)).toEqual(reached(1));
  // The number stays: the batch is in the target. A runner that is lost right after opening it changes nothing.
  const givenUp = { batchNo: 1, position: null, fingerprint: null, safePoint: null };
  expect(await found(3, 2)).toEqual(givenUp);
  expect(await found(4, 2)).toEqual(givenUp);
  await record(5, 2, reached(2));
  expect(await found(6, 2)).toEqual(reached(2));
});

describe("rows that a table refuses", () => {
  const COLUMNS = ["id bigint", "n integer", "short varchar(3)", "flag boolean", "rest text"];
  const LOADS: readonly [string, SinkRequest["load"]][] = [
    ["upsert", { kind: "upsert" }],
    ["compare and apply", { kind: "replace", loadId: randomUUID(), inKeyOrder: true }],
    ["shadow and merge", { kind: "replace", loadId: randomUUID(), inKeyOrder: false }],
  ];

  /** Each is refused for a reason of its own; of the last one the server cannot even be told. */
  const REASONS: readonly ((id: string) => Row)[] = [
    (id) => [id, "12x", "abc", "t", null],
    (id) => [id, "99999999999", "abc", "t", null],
    (id) => [id, "1", "abcd", "t", "too long"],
    (id) => [id, "1", 'a"\\', "maybe", "quotes \t and\nlines"],
    (id) => [id, "1", null, "t", "null"],
    (id) => [id, "-1", "abc", "t", "check"],
    () => [null, "1", "abc", "t", "no key"],
    (id) => [id, "1", "abc", "t", "nul \0"],
  ];

  async function openWriter(table: string, load: SinkRequest["load"]) {
    await database.query(`CREATE TABLE IF NOT EXISTS analytics.${table} (id bigint PRIMARY KEY, n integer CHECK (n > 0),
      short varchar(3) NOT NULL, flag boolean, rest text); GRANT ALL ON analytics.${table} TO vitrina_writer`);
    const writer = await openSink().open({
      target: { kind: "postgres", schema: "analytics", table },
      columns: COLUMNS.map((column) => {
        const [name = "", type = ""] = column.split(" ");
        return { name, type };
      }),
      key: ["id"],
      createTarget: false,
      addColumns: false,
      load,
      options: {},
      claim: { pipelineId: randomUUID(), runId: randomUUID(), epoch: 1, decidedEpoch: 0, batchNo: 0 },
      isMetaStore: async () => true,
      lost: new AbortController().signal,
      cancelled: new AbortController().signal,
      requireLease: async () => undefined,
    });
    await commitBegin(writer);
    const write = (rows: readonly Row[]): Promise<BatchResult> => commitRows(writer, rows);
    return { write, close: () => writer.close() };
  }

  it("a column that is dropped under a load is told as what it is", async () => {
    const table = `r_${randomUUID().slice(0, 8)}`;
    const { write, close } = await openWriter(table, { kind: "upsert" });
    await database.query(`ALTER TABLE analytics.${table} DROP COLUMN rest`);
    const failure = { code: "TARGET_CHANGED", retry: "retry", message: expect.stringContaining(`"${table}"`) };
    await expect(write([["1", "1", "abc", "t", "x"]])).rejects.toMatchObject(failure);
    await close();
  });

  it("a table that is dropped while a load opens it is told as what it is, and may be opened again", async () => {
    const table = `r_${randomUUID().slice(0, 8)}`;
    const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
    let isDropped = false;
    const spy = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
      this: pg.Client,
      ...args: unknown[]
    ) {
      const isLook = JSON.stringify(args[0])?.includes("attname") && JSON.stringify(args[1])?.includes(table);
      if (isDropped || !isLook) return query.apply(this, args);
      isDropped = true;
      return database.query(`DROP TABLE analytics.${table}`).then(() => query.apply(this, args));
    });
    try {
      const failure = { code: "TARGET_CHANGED", retry: "retry" };
      await expect(openWriter(table, { kind: "upsert" })).rejects.toMatchObject(failure);
      expect(isDropped).toBe(true);
      await (await openWriter(table, { kind: "upsert" })).close();
    } finally {
      spy.mockRestore();
    }
  });

  it.each(LOADS)("are found by few statements, each with its own reason, by %s", async (_, load) => {
    const { write, close } = await openWriter(`r_${randomUUID().slice(0, 8)}`, load);
    const alone: string[] = [];
    for (const reason of REASONS.slice(0, -1)) alone.push((await write([reason("1")])).rejects[0]?.reason ?? "none");
    expect(new Set(alone).size).toBe(alone.length);
    // Nine of ten are refused, for all the reasons but the last.
    const rows = Array.from({ length: 5000 }, (_, index): Row => {
      const id = String(index + 10);
      const reason = REASONS[index % (REASONS.length - 1)];
      return index % 10 === 3 || reason === undefined ? [id, "1", "abc", "t", "good"] : reason(id);
    });
    const statements = vi.spyOn(pg.Client.prototype, "query");
    const { rejects, rows_written } = await write(rows);
    const count = statements.mock.calls.length;
    statements.mockRestore();
    expect({ rejects: rejects.length, rows_written }).toEqual({ rejects: 4500, rows_written: 500 });
    const expected = rows.flatMap((row, index) =>
      row.at(-1) === "good" ? [] : [{ row, code: "ROW_REFUSED", reason: alone[index % alone.length] }],
    );
    expect(rejects.map(({ error: _, ...reject }) => reject)).toEqual(expected);
    expect(count).toBeLessThan(40);
    await close();
  });

  it("are found when a trigger raises an error of no class, and when a row is too large for an index", async () => {
    const table = `r_${randomUUID().slice(0, 8)}`;
    const { write, close } = await openWriter(table, { kind: "upsert" });
    const names = await database.query(`SELECT attname AS name FROM pg_attribute
      WHERE attrelid = 'analytics.${table}'::regclass AND attnum > 0 ORDER BY attnum`);
    const last = names.at(-1)?.["name"];
    await database.query(`CREATE FUNCTION analytics.${table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.n = 13 THEN RAISE EXCEPTION 'no luck with %', NEW.id; END IF; RETURN NEW; END $$;
      CREATE TRIGGER unlucky BEFORE INSERT ON analytics.${table} FOR EACH ROW EXECUTE FUNCTION analytics.${table}();
      CREATE INDEX ON analytics.${table} (${last})`);
    const row = (id: number, n: string, note: string | null): Row => [String(id), n, "abc", "t", note];
    const large = randomBytes(8000).toString("hex");
    const { rejects, rows_written } = await write([row(1, "1", null), row(2, "13", null), row(3, "1", large)]);
    expect(rows_written).toBe(1);
    expect(rejects.map(({ row: [id], error }) => [id, /SQLSTATE \w+/.exec(error)?.[0]])).toEqual([
      ["2", "SQLSTATE P0001"],
      ["3", "SQLSTATE 54000"],
    ]);
    await close();
  });

  it("are found when only the commit would refuse them", async () => {
    const table = `r_${randomUUID().slice(0, 8)}`;
    const { write, close } = await openWriter(table, { kind: "upsert" });
    const row = (id: number, n: string): Row => [String(id), n, "abc", "t", null];
    await write([row(1, "1")]);
    await database.query(`ALTER TABLE analytics.${table} ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED`);
    const { rejects, rows_written } = await write([row(2, "2"), row(3, "1"), row(4, "4")]);
    expect(rows_written).toBe(2);
    expect(rejects.map(({ row: [id], code, reason }) => [id, code, /SQLSTATE \w+/.exec(reason)?.[0]])).toEqual([
      ["3", "ROW_REFUSED", "SQLSTATE 23505"],
    ]);
    const kept = await database.query(`SELECT id::int, n::int FROM analytics.${table} ORDER BY id`);
    expect(kept.map(({ id, n }) => [id, n])).toEqual([
      [1, 1],
      [2, 2],
      [4, 4],
    ]);
    await close();
  });

  it("are found when the server cannot even be told their text, and when only a trigger refuses them", async () => {
    const table = `r_${randomUUID().slice(0, 8)}`;
    const { write, close } = await openWriter(table, { kind: "upsert" });
    await database.query(`CREATE FUNCTION analytics.${table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.n = 13 THEN RAISE EXCEPTION 'no luck with %', NEW.id USING ERRCODE = '23514'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER unlucky BEFORE INSERT ON analytics.${table} FOR EACH ROW EXECUTE FUNCTION analytics.${table}()`);
    const good = (id: number, n = "1"): Row => [String(id), n, "abc", "t", null];
    const nul = REASONS.at(-1)?.("3") ?? [];
    const { rejects, rows_written } = await write([good(1), good(2, "13"), nul, good(4), good(5, "13"), good(6)]);
    expect(rows_written).toBe(3);
    const place = `analytics.${table}`;
    // What everybody may read has no values; who may see the row sees the server's own words.
    const words = (text: string) => text.replace(/^.*?: /, "");
    expect(rejects.map(({ row, error, reason }) => [row[0], words(error), words(reason)])).toEqual([
      ["2", "no luck with 2 (SQLSTATE 23514).", `a constraint is violated (in ${place}, line 2) (SQLSTATE 23514).`],
      [
        "3",
        'invalid byte sequence for encoding "UTF8": 0x00 (SQLSTATE 22021).',
        'invalid byte sequence for encoding "…" (SQLSTATE 22021).',
      ],
      ["5", "no luck with 5 (SQLSTATE 23514).", `a constraint is violated (in ${place}, line 2) (SQLSTATE 23514).`],
    ]);
    await close();
  });
});
