import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXACT_TEXT_SETTINGS } from "../../src/connectors/postgres/data-session.ts";
import { fitOf, sortAlike } from "../../src/connectors/postgres/type-fit.ts";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { ownSource } from "../../src/main/own-source.ts";
import { startRunner } from "../../src/main/runner.ts";
import { createLog } from "../../src/observability/log.ts";
import { connectForData } from "../../src/postgres/connection.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** A value arrives as it is, or its row is refused: for every pair of types, and the same by every data path. */

let bench: Bench;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-types-"));
  await writeFile(
    join(folder, "tasks.mjs"),
    `export default ({ defineTask, z }) => [
       defineTask({ name: "same", description: "d", params: z.strictObject({}), run: (rows) => rows })];`,
  );
  bench = await openBench({ TASKS_DIR: folder });
  await bench.query(`CREATE TYPE content.mood AS ENUM ('sad', 'ok'); GRANT USAGE ON SCHEMA content TO vitrina_writer;
    CREATE TYPE analytics.mood AS ENUM ('ok', 'glad'); CREATE DOMAIN analytics.short AS varchar(3) CHECK (value <> 'no')`);
});
afterAll(async () => {
  await bench.close();
  await rm(folder, { recursive: true, force: true });
});

/** Each type with values that break things. */
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  smallint: ["0", "-32768", "32767"],
  integer: ["1", "-2147483648", "2147483647", "16777217"],
  bigint: ["5", "9223372036854775807", "-9223372036854775808", "9007199254740993"],
  numeric: ["1.5", "20", "1.10", "NaN", "Infinity", "123456789012345678901234567890.123456789"],
  "numeric(5,2)": ["1.50", "999.99", "NaN"],
  "numeric(10,0)": ["15", "9999999999", "NaN"],
  "numeric(12,4)": ["1.0000", "99999999.9999"],
  real: ["0.1", "1.5", "16777216", "NaN", "-Infinity", "3.4e38"],
  "double precision": ["0.1", "0.30000000000000004", "1e300", "NaN", "Infinity", "-0"],
  text: ["abc", "abcd", "abc  ", "", " x", "ok", "true", "1", "Ж😀"],
  "character varying": ["abc", "abc ", ""],
  "character varying(5)": ["abcde", "ab   ", "ok"],
  "character varying(20)": ["abcdefghij", "x"],
  "character(3)": ["a", "abc", ""],
  "character(20)": ["ab", "abcdefghijklmnopqrst"],
  boolean: ["t", "f"],
  date: ["2024-02-29", "infinity", "0044-03-15 BC"],
  "timestamp without time zone": ["2024-02-29 12:00:00.123456", "2024-01-01", "-infinity"],
  "timestamp(0) without time zone": ["2024-02-29 12:00:01"],
  "timestamp with time zone": ["2024-02-29 23:59:59.999999+03", "infinity"],
  "timestamp(3) with time zone": ["2024-02-29 12:00:00.123+00"],
  "time without time zone": ["24:00:00", "12:00:00.123456"],
  "time(0) without time zone": ["12:00:01"],
  "time with time zone": ["12:00:00.123456+03"],
  interval: ["-1 mon +2 days -03:04:05.678901", "0"],
  "interval(0)": ["00:00:05"],
  json: ['{"b":1,  "a":2}', "null"],
  jsonb: ['{"a": 12345678901234567890.123}', "[]"],
  uuid: ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
  bytea: ["\\xdeadbeef00"],
  inet: ["10.0.0.1", "10.0.0.1/8", "::1"],
  cidr: ["10.0.0.0/8"],
  "bit(3)": ["101"],
  "bit varying": ["10101"],
  "bit varying(3)": ["101"],
  money: ["12.34"],
  '"char"': ["c"],
  name: ["n"],
  "integer[]": ["{1,2147483647,NULL}"],
  "bigint[]": ["{1,9223372036854775807}"],
  "text[]": ['{a,"b c",NULL}'],
  "character varying[]": ['{a,"b  ",NULL}'],
  int4range: ["[1,5)", "empty"],
  "content.mood": ["sad", "ok"],
};
const MORE_TARGETS = ["analytics.mood", "analytics.short"] as const;
const SOURCES = Object.keys(SAMPLES);
const TARGETS = [...SOURCES, ...MORE_TARGETS];

const sourceType = (type: string) => ({ type, ...(type === "content.mood" && { plainType: "text" }) });
const targetType = (type: string) => ({
  type,
  ...(type === "analytics.short" && { baseType: "character varying(3)" }),
  ...(type === "analytics.mood" && { labels: ["ok", "glad"] }),
  ...(type === "content.mood" && { labels: ["sad", "ok"] }),
});
const literal = (text: string): string => `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

/** Two types that only have their texts in common come back by way of them. */
const isPrinted = (type: string): boolean => /^(text|character|name|"char"|content\.|analytics\.)/.test(type);

describe("every pair of types", () => {
  it("fits only where each value arrives as it is, or is refused", async () => {
    const url = bench.database.url;
    const client = await connectForData({ url, applicationName: "test", settings: EXACT_TEXT_SETTINGS });
    const changed: string[] = [];
    for (const source of SOURCES) {
      const questions = TARGETS.flatMap((target) => {
        const fit = fitOf(sourceType(source), targetType(target));
        if (fit === "same" || "misfit" in fit) return [];
        const refuses = fit.refuses?.("v") ?? "false";
        const stored = `CASE WHEN ${refuses} THEN NULL ELSE ${fit.convert("v")} END`;
        const back = isPrinted(source) || isPrinted(target) ? `(${stored})::text::${source}` : `(${stored})::${source}`;
        const same = /^jsonb?$/.test(source) ? `(${back})::jsonb = v::jsonb` : `(${back})::text = v::text`;
        return [
          `SELECT ${literal(target)} AS target, v::text FROM given WHERE NOT (${refuses}) AND (${same}) IS NOT TRUE`,
        ];
      });
      const values = (SAMPLES[source] ?? []).map((text) => `(${literal(text)}::${source})`).join(", ");
      const given = `WITH given (v) AS (VALUES ${values})`;
      const { rows } = await client.query(`${given} ${questions.join(" UNION ALL ")}`);
      changed.push(...rows.map(({ target, v }) => `${source} ${v} → ${target}`));
    }
    await client.end();
    expect(changed).toEqual([]);
  });

  it.each([
    ["numeric", "bigint", /rounded/],
    ["numeric(12,4)", "numeric(5,2)", /rounded/],
    ["double precision", "real", /rounded/],
    ["bigint", "double precision", /rounded/],
    ["character(20)", "character varying(3)", /cut/],
    ["timestamp with time zone", "date", /cut/],
    ["timestamp without time zone", "timestamp(0) without time zone", /rounded/],
    ["text", "boolean", /cannot assign such a value/],
  ])("%s never fits %s", (source, target, reason) => {
    expect(fitOf({ type: source }, { type: target })).toEqual({ misfit: expect.stringMatching(reason) });
  });
});

it.each([
  ["character varying[]", "text[]"],
  ["character(3)[]", "text[]"],
  ["bigint[]", "text[]"],
])("%s fits %s", (source, target) => {
  expect(fitOf({ type: source }, { type: target })).toMatchObject({ staged: source });
});

interface Pair {
  readonly source: string;
  readonly target: string;
}

const misfits = ({ source, target }: Pair): boolean => {
  const fit = fitOf(sourceType(source), targetType(target));
  return fit !== "same" && "misfit" in fit;
};

const pair = fc.record({ source: fc.constantFrom(...SOURCES), target: fc.constantFrom(...TARGETS) });
const fitting = pair.filter((one) => !misfits(one));
/** Many columns at once; now and then one that must stop the run. */
const scenario = fc.record({
  pairs: fc.array(fitting, { minLength: 12, maxLength: 12 }),
  misfit: fc.option(pair.filter(misfits), { freq: 2 }),
});

let number = 0;

async function createScenario({ pairs, misfit }: typeof scenario extends fc.Arbitrary<infer T> ? T : never) {
  number += 1;
  const all = misfit === null ? pairs : [...pairs, misfit];
  const table = `content.typed${number}`;
  const length = Math.max(...all.map(({ source }) => SAMPLES[source]?.length ?? 0));
  const rows = Array.from({ length }, (_, row) => {
    const values = all.map(({ source }) => {
      const samples = SAMPLES[source] ?? [];
      return row < samples.length ? literal(samples[row] ?? "") : "NULL";
    });
    return `(${row + 1}, ${values.join(", ")})`;
  });
  const define = (side: keyof Pair): string => all.map((one, n) => `c${n} ${one[side]}`).join(", ");
  await bench.query(`CREATE TABLE ${table} (id bigint PRIMARY KEY, ${define("source")});
    INSERT INTO ${table} VALUES ${rows.join(", ")};
    ANALYZE ${table}`);
  const create = async (path: string): Promise<Pipeline> => {
    const target = `analytics.typed${number}_${path}`;
    await bench.query(`CREATE TABLE ${target} (id bigint PRIMARY KEY, ${define("target")});
      GRANT SELECT, INSERT, UPDATE, DELETE ON ${target} TO vitrina_writer`);
    const source_query = `SELECT * FROM ${table}`;
    const tasks =
      path === "rows"
        ? {
            tasks: [
              { order_index: 1, task_type: "SQL", body: source_query },
              { order_index: 2, task_type: "TYPESCRIPT", body: "same" },
            ],
          }
        : { source_query };
    const follows = path === "followed" && { mode: "follow", follow: { check_every_seconds: 3600 } };
    return bench.create({ target_table: target, target_key: ["id"], batch_size: 100, ...tasks, ...follows });
  };
  return {
    table,
    pushed: await create("pushed"),
    streamed: await create("streamed"),
    passed: await create("rows"),
    followed: await create("followed"),
  };
}

const PATHS = /_(pushed|streamed|rows|followed)/g;

/** What a person sees of it. */
async function outcome(pipeline: Pipeline) {
  const run = await bench.run(pipeline);
  const rejects = await bench.query(
    `SELECT row_key->>'id' AS id, replace(error, 'typed', '') AS error FROM etl.etl_rejects WHERE pipeline_id = '${pipeline.id}' ORDER BY 1`,
  );
  return {
    path: run.data_path,
    status: run.status,
    error_code: run.error_code,
    error: run.error?.replace(PATHS, ""),
    rejects: rejects.map(({ id, error }) => [id, (error as string).replace(PATHS, "")]),
    rows: await bench.rowsOf(pipeline.target_table),
  };
}

it("every data path writes the same rows and refuses the same, for the same reasons, whatever the types", async () => {
  // Nothing in it fails by itself: the server would just cut what is too long.
  const cut = { pairs: [{ source: "text", target: "character varying(3)" }], misfit: null };
  const scenarios = [cut, ...fc.sample(scenario, { seed: 20_261_116, numRuns: 6 })];
  const created: Awaited<ReturnType<typeof createScenario>>[] = [];
  for (const one of scenarios) created.push(await createScenario(one));
  const { settings, urls } = bench.database;
  const log = createLog({ level: "silent" });
  const outcomes = async (withLoader: boolean, choose: (made: (typeof created)[number]) => Pipeline) => {
    const own = ownSource(settings, urls, bench.database.url);
    const runner = await startRunner(settings, withLoader ? urls : { ...urls, loader: undefined }, log, undefined, own);
    const found = [];
    for (const made of created) found.push(await outcome(choose(made)));
    await runner.stop();
    return found;
  };
  const pushed = await outcomes(true, (made) => made.pushed);
  const streamed = await outcomes(false, (made) => made.streamed);
  const passed = await outcomes(false, (made) => made.passed);
  const compared = await outcomes(true, (made) => made.followed);
  // Each key is touched, and everything is as before.
  for (const { table } of created)
    await bench.query(`UPDATE ${table} SET id = id + 1000; UPDATE ${table} SET id = id - 1000`);
  const followed = await outcomes(true, (made) => made.followed);
  const of = (all: typeof pushed) => all.map(({ path: _, ...rest }) => rest);
  expect(of(streamed)).toEqual(of(pushed));
  expect(of(passed)).toEqual(of(pushed));
  expect(of(compared)).toEqual(of(pushed));
  expect(of(followed)).toEqual(of(pushed));
  // The scenarios hold what they are there for: each path, rows that are refused, and types that stop a run.
  const paths = (all: typeof pushed) => [...new Set(all.flatMap(({ path }) => path ?? []))];
  expect([paths(pushed), paths(streamed), paths(passed)]).toEqual([["push-down"], ["stream"], ["rows"]]);
  expect(pushed.some(({ status, rejects }) => status === "SUCCESS" && rejects.length > 0)).toBe(true);
  expect(pushed[0]?.rejects.map(([id]) => id)).toEqual(["2", "3", "7"]);
  const stopped = scenarios.filter(({ misfit }) => misfit !== null);
  expect(stopped.length).toBeGreaterThan(0);
  expect(pushed.filter(({ error_code }) => error_code === "TARGET_TYPE_MISMATCH")).toHaveLength(stopped.length);
});

it("a key that sorts otherwise in the target is loaded whole, and nothing is deleted on the way", async () => {
  await bench.query(`CREATE TABLE content.sorted AS SELECT n AS id, 'x' AS title FROM generate_series(1, 30) n;
    ALTER TABLE content.sorted ADD PRIMARY KEY (id); ANALYZE content.sorted;
    CREATE TABLE analytics.sorted (id text COLLATE "C" PRIMARY KEY, title text);
    GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.sorted TO vitrina_writer`);
  const source_query = "SELECT id, title FROM content.sorted";
  const pipeline = await bench.create({
    source_query,
    target_table: "analytics.sorted",
    target_key: ["id"],
    batch_size: 7,
  });
  await bench.startRunner();
  expect(await bench.run(pipeline)).toMatchObject({
    status: "SUCCESS",
    strategy: "shadow and merge",
    rows_written: 30,
  });
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_unchanged: 30, rows_deleted: 0 });
  await bench.stopRunner();
});

describe("a key of a type that only the source's roles may name", () => {
  beforeAll(async () => {
    await bench.query(`CREATE SCHEMA IF NOT EXISTS ugc; GRANT USAGE ON SCHEMA ugc TO vitrina_reader;
      CREATE TYPE ugc.level AS ENUM ('low', 'high', 'best');
      CREATE TABLE ugc.rated (level ugc.level, id int, title text, PRIMARY KEY (level, id)); GRANT SELECT ON ugc.rated TO vitrina_reader;
      INSERT INTO ugc.rated SELECT (enum_range(NULL::ugc.level))[1 + n % 3], n, 'x' FROM generate_series(1, 300) n; ANALYZE ugc.rated;
      CREATE TABLE analytics.rated (LIKE ugc.rated INCLUDING ALL); GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.rated TO vitrina_writer`);
    await bench.startRunner();
  });
  afterAll(() => bench.stopRunner());

  it.each([{ create_target: true }, { create_target: false, target_table: "analytics.rated" }])(
    "is loaded by push-down, and again after changes: %o",
    async (target) => {
      const source_query = "SELECT level, id, title FROM ugc.rated";
      const pipeline = await bench.create({ source_query, target_key: ["level", "id"], batch_size: 40, ...target });
      const sorted = async (relation: string) => (await bench.rowsOf(relation)).toSorted();
      for (const change of [
        "SELECT",
        "UPDATE ugc.rated SET title = 'y' WHERE id % 9 = 0",
        "DELETE FROM ugc.rated WHERE id % 9 = 1",
      ]) {
        await bench.query(change);
        expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", data_path: "push-down", error: null });
        expect(await sorted(pipeline.target_table)).toEqual(await sorted("ugc.rated"));
      }
    },
  );
});

it.each([
  ["full", "numeric", "1.0", "1.000"],
  ["incremental", "numeric", "1.0", "1.000"],
  ["full", "text COLLATE analytics.any_case", "Film", "FILM"],
  ["full", "interval", "1 day", "24:00:00"],
])("in mode %s a key of type %s is written as it is: %s becomes %s", async (mode, type, before, after) => {
  number += 1;
  const [source, target] = [`content.keyed${number}`, `analytics.keyed${number}`];
  await bench.query(`CREATE COLLATION IF NOT EXISTS analytics.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE ${source} (id ${type.split(" ")[0]} PRIMARY KEY, n int); INSERT INTO ${source} VALUES ('${before}', 1);
    CREATE TABLE ${target} (id ${type} PRIMARY KEY, n int); GRANT SELECT, INSERT, UPDATE, DELETE ON ${target} TO vitrina_writer`);
  const cursor = mode === "incremental" ? { mode, incremental_key: "n" } : {};
  const source_query = `SELECT id, n FROM ${source}`;
  const pipeline = await bench.create({ source_query, target_table: target, target_key: ["id"], ...cursor });
  await bench.startRunner();
  await bench.run(pipeline);
  await bench.query(`UPDATE ${source} SET id = '${after}'${mode === "incremental" ? ", n = 2" : ""}`);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1, rows_deleted: 0 });
  expect(await bench.rowsOf(target)).toEqual(await bench.rowsOf(source));
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 0 });
  await bench.stopRunner();
});

it.each([
  ["new table", "numeric", "1.0", "1.00"],
  ["compare and apply", "numeric", "1.0", "1.00"],
  ["shadow and merge", "numeric", "1.0", "1.00"],
  ["compare and apply", "interval", "1 day", "24:00:00"],
  ["compare and apply", "double precision", "0", "-0"],
])(
  "%s refuses a key of type %s that the query returns as %s and, in the next batch, as %s",
  async (strategy, type, one, same) => {
    number += 1;
    const [source, target] = [`content.keyed${number}`, `analytics.keyed${number}`];
    await bench.query(`CREATE TABLE ${source} (part text, id ${type}, n int);
    INSERT INTO ${source} VALUES ('a', '${one}', 1), ('a', '${same}', 2)`);
    if (strategy !== "new table") {
      const part = strategy === "shadow and merge" ? "text" : 'text COLLATE "C"';
      await bench.query(`CREATE TABLE ${target} (part ${part}, id ${type}, n int, PRIMARY KEY (part, id));
      GRANT SELECT, INSERT, UPDATE, DELETE ON ${target} TO vitrina_writer`);
    }
    const source_query = `SELECT part, id, n FROM ${source}`;
    const pipeline = await bench.create({
      source_query,
      target_table: target,
      target_key: ["part", "id"],
      create_target: strategy === "new table",
      batch_size: 1,
    });
    await bench.startRunner();
    const refused = { status: "FAILED", error_code: "KEY_NOT_UNIQUE_IN_SOURCE", data_path: "stream", strategy };
    for (const _time of ["first", "second"]) expect(await bench.run(pipeline)).toMatchObject(refused);
    await bench.query(`DELETE FROM ${source} WHERE n = 2`);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    await bench.stopRunner();
  },
);

it("a type of one's own need not sort in the target as it does in the source", () => {
  expect(sortAlike("content.mood", "content.mood")).toBe(false);
  expect(sortAlike("smallint", "bigint")).toBe(true);
});

it("a new table has types of an extension as they are, with their modifiers", async () => {
  // Like vector(3) or geometry(Point): a base type with modifiers, that both sides may use.
  await bench.query(`
    CREATE TYPE analytics.code;
    CREATE FUNCTION analytics.code_in(cstring, oid, int) RETURNS analytics.code LANGUAGE internal IMMUTABLE STRICT AS 'varcharin';
    CREATE FUNCTION analytics.code_out(analytics.code) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'varcharout';
    CREATE FUNCTION analytics.code_modifier(cstring[]) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'varchartypmodin';
    CREATE FUNCTION analytics.shown_modifier(int) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'varchartypmodout';
    CREATE TYPE analytics.code (INPUT = analytics.code_in, OUTPUT = analytics.code_out,
      TYPMOD_IN = analytics.code_modifier, TYPMOD_OUT = analytics.shown_modifier);
    GRANT USAGE ON SCHEMA analytics TO vitrina_reader;
    CREATE TABLE content.coded (id int PRIMARY KEY, code analytics.code(3)); INSERT INTO content.coded VALUES (1, 'abc')`);
  const pipeline = await bench.create({ source_query: "SELECT id, code FROM content.coded", target_key: ["id"] });
  await bench.startRunner();
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1, error: null });
  await bench.stopRunner();
  expect(await bench.rowsOf(pipeline.target_table)).toEqual(["(1,abc)"]);
});
