import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openTryOut, type TryOut } from "../support/try-out.ts";

/** Generated pipelines over awkward sources and targets: what `validate` calls valid runs, and nothing else does. */

let bench: TryOut;
beforeAll(async () => {
  bench = await openTryOut();
  await bench.query(`
    CREATE TYPE content.mood AS ENUM ('sad', 'ok');
    CREATE DOMAIN content.percent AS numeric(5,2) CHECK (value <= 100);
    CREATE TABLE content.good (id bigint PRIMARY KEY, title text, price numeric, mood content.mood,
      share content.percent, at timestamptz NOT NULL);
    INSERT INTO content.good SELECT n, 't' || n, n + 0.5, 'ok', n % 100, '2024-01-01'::timestamptz + n * interval '1 s'
      FROM generate_series(1, 60) n;
    CREATE TABLE content.twice AS SELECT n / 2 + 1 AS id, 't' || n AS title, 1.5 AS price, 'ok'::content.mood AS mood,
      1::content.percent AS share, '2024-01-01'::timestamptz + n * interval '1 s' AS at FROM generate_series(1, 60) n;
    CREATE TABLE content.keyless AS SELECT NULLIF(n, 7) AS id, 't' || n AS title, 1.5 AS price, 'ok'::content.mood AS mood,
      1::content.percent AS share, NULLIF(n, 9) * interval '1 s' + '2024-01-01'::timestamptz AS at FROM generate_series(1, 60) n;
    ANALYZE`);
  await bench.startRunner();
});
afterAll(() => bench.close());

const COLUMNS = ["title", "price", "mood", "share", "price::numeric(9,0) AS price", '1 AS "Odd ""x"""'];
const FLAWS = ["", "", "", "", "", ", title AS id", ", nonsense"];
const TARGET_TYPES = ["text", "text", "varchar(2)", "varchar(9)", "numeric", "bigint", "boolean", "timestamptz"];

const scenario = fc.record({
  source: fc.constantFrom("good", "good", "good", "good", "good", "twice", "keyless"),
  columns: fc.uniqueArray(fc.constantFrom(...COLUMNS), { minLength: 1, maxLength: 2 }),
  flaw: fc.constantFrom(...FLAWS),
  key: fc.constantFrom(["id"], ["id"], ["id"], ["id"], ["id"], [], ["nobody"]),
  mode: fc.constantFrom("full", "full", "incremental"),
  target: fc.option(
    fc.record({
      types: fc.array(fc.constantFrom(...TARGET_TYPES), { minLength: 3, maxLength: 3 }),
      missing: fc.boolean(),
      own: fc.constantFrom("", ", own text", ", own text NOT NULL"),
    }),
    { freq: 2 },
  ),
  create_target: fc.constantFrom(true, true, true, true, false),
  add_columns: fc.boolean(),
  max_rejects: fc.constantFrom(0, 100),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

let number = 0;

async function configure({ source, columns, flaw, key, mode, target, ...flags }: Scenario) {
  number += 1;
  const target_table = `analytics.v${number}`;
  if (target !== null) {
    const given = columns.map((column) => / AS (.*)/.exec(column)?.[1] ?? column);
    const names = [...new Set(given)].filter((name) => name !== "id");
    const kept = target.missing ? names.slice(1) : names;
    const defined = kept.map((name, n) => `, ${name} ${target.types[n]}`).join("");
    await bench.query(`CREATE TABLE ${target_table} (id bigint PRIMARY KEY, at timestamptz${defined}${target.own});
      ALTER TABLE ${target_table} OWNER TO vitrina_writer`);
  }
  return {
    target_table,
    source_query: `SELECT id, at, ${columns.join(", ")}${flaw} FROM content.${source}`,
    target_key: key,
    batch_size: 20,
    ...(mode === "incremental" && { mode, incremental_key: "at", incremental_id_key: "id" }),
    ...flags,
  };
}

it("R3.4 a pipeline is valid exactly when its run succeeds, and what is refused is refused with the same code", async () => {
  const scenarios = fc.sample(scenario, { seed: 11, numRuns: 20 });
  const seen = { valid: 0, refused: 0 };
  for (const one of scenarios) {
    const config = await configure(one);
    const pipeline = await bench.create(config);
    const { body, status, text } = await bench.post(`/api/v1/pipelines/${pipeline.id}/validate`);
    expect(status, text).toBe(200);
    const errors = (body.problems as { code: string; severity: string }[]).filter(
      ({ severity }) => severity === "error",
    );
    const run = await bench.run(pipeline);
    const judged = { config, valid: body.valid, run: run.status, code: run.error_code, error: run.error };
    if (run.status === "SUCCESS") expect(judged).toMatchObject({ valid: true });
    else {
      expect(judged).toMatchObject({ valid: false });
      // Rows that would be refused are told for what they are.
      const codes =
        run.error_code === "TOO_MANY_REJECTS" ? ["KEY_NULL_IN_SOURCE", "TOO_MANY_REJECTS"] : [run.error_code];
      expect({ ...judged, told: errors.filter(({ code }) => codes.includes(code)) }).not.toMatchObject({ told: [] });
    }
    seen[body.valid ? "valid" : "refused"] += 1;
  }
  expect(Math.min(seen.valid, seen.refused)).toBeGreaterThan(3);
});
