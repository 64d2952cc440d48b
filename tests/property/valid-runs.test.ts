import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { runs, SEED } from "../support/seed.ts";
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
    ${BESIDE};
    ANALYZE`);
  await bench.startRunner();
});
afterAll(() => bench.close());

/** What followed queries join with, and what nobody can follow. */
const BESIDE = `
    CREATE TABLE content.mood_text (of_mood content.mood PRIMARY KEY, note text);
    INSERT INTO content.mood_text VALUES ('ok', 'fine'), ('sad', 'not so fine');
    CREATE TABLE content.share_text (of_share content.percent PRIMARY KEY, note text);
    INSERT INTO content.share_text SELECT n, 'part ' || n FROM generate_series(0, 99) n;
    CREATE TABLE content.remark (good_id bigint, note text);
    INSERT INTO content.remark SELECT NULLIF(n % 60, 0), 'r' || n FROM generate_series(1, 80) n;
    CREATE TABLE content.band (low numeric, high numeric, note text);
    INSERT INTO content.band VALUES (0, 30, 'low'), (30, 100, 'high');
    CREATE COLLATION content.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE content.caseless (caption text COLLATE content.any_case PRIMARY KEY, note text);
    INSERT INTO content.caseless SELECT 'T' || n, 'c' FROM generate_series(1, 60) n;
    CREATE TABLE content.parted (LIKE content.good) PARTITION BY RANGE (id);
    CREATE TABLE content.parted_1 PARTITION OF content.parted FOR VALUES FROM (0) TO (30);
    CREATE TABLE content.parted_2 PARTITION OF content.parted FOR VALUES FROM (30) TO (1000);
    INSERT INTO content.parted SELECT * FROM content.good;
    CREATE VIEW content.seen AS SELECT * FROM content.good WHERE share < 50;
    CREATE MATERIALIZED VIEW content.kept AS SELECT * FROM content.good;
    CREATE UNLOGGED TABLE content.fleeting AS SELECT * FROM content.good;
    CREATE TABLE content.hidden AS SELECT id AS hidden_id, 'h' AS note FROM content.good;
    REVOKE ALL ON content.hidden FROM vitrina_reader`;

const COLUMNS = ["title", "price", "mood", "share", "price::numeric(9,0) AS price", '1 AS "Odd ""x"""'];
const FLAWS = ["", "", "", "", "", ", title AS id", ", nonsense"];
const TARGET_TYPES = ["text", "text", "varchar(2)", "varchar(9)", "numeric", "bigint", "boolean", "timestamptz"];

/** Mostly the one, now and then the other: otherwise next to nothing would be valid. */
const mostly = <T>(usual: readonly T[], odd: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constantFrom(...odd) });

const targetOf = (types: readonly string[], own: readonly string[], missing = fc.boolean()) =>
  fc.record({
    types: fc.array(fc.constantFrom(...types), { minLength: 3, maxLength: 3 }),
    missing,
    own: fc.constantFrom(...own),
  });
type Target = typeof targetOf extends (...args: never[]) => fc.Arbitrary<infer T> ? T : never;

const shared = {
  columns: fc.uniqueArray(fc.constantFrom(...COLUMNS), { minLength: 1, maxLength: 2 }),
  flaw: fc.constantFrom(...FLAWS),
  target: fc.option(targetOf(TARGET_TYPES, ["", ", own text", ", own text NOT NULL"]), { freq: 2 }),
  create_target: fc.constantFrom(true, true, true, true, false),
  add_columns: fc.boolean(),
  max_rejects: fc.constantFrom(0, 100),
};

const scenario = fc.record({
  ...shared,
  source: fc.constantFrom("good", "good", "good", "good", "good", "twice", "keyless"),
  key: fc.constantFrom(["id"], ["id"], ["id"], ["id"], ["id"], [], ["nobody"]),
  mode: fc.constantFrom("full", "full", "incremental"),
});

/** Sources with the columns of `good`, by the name g, from whose changes a way leads to most keys. */
const FOLLOWABLE = [
  "content.good g",
  "content.twice g",
  "content.keyless g",
  "content.seen g",
  "content.parted g",
  "content.good g JOIN content.mood_text t ON t.of_mood = g.mood",
  "content.good g LEFT JOIN content.share_text t ON t.of_share = g.share",
  "content.good g LEFT JOIN content.share_text t ON t.of_share = g.price",
  "content.good g LEFT JOIN (SELECT good_id, count(*) AS n FROM content.remark GROUP BY good_id) t ON t.good_id = g.id",
  "content.keyless g LEFT JOIN content.remark t ON t.good_id = g.id",
  "(SELECT * FROM content.good UNION ALL SELECT * FROM content.twice WHERE id > 60) g",
  "(SELECT DISTINCT ON (id) * FROM content.twice ORDER BY id, at) g",
  "(SELECT * FROM content.good x WHERE NOT EXISTS (SELECT FROM content.remark r WHERE r.good_id = x.id)) g",
];
const UNFOLLOWABLE = [
  "content.fleeting g",
  "content.kept g",
  "content.good g JOIN content.band t ON g.price BETWEEN t.low AND t.high",
  "content.good g JOIN content.caseless t ON t.caption = g.title",
  "content.good g JOIN content.hidden t ON t.hidden_id = g.id",
  "content.remark t LEFT JOIN content.good g ON t.good_id = g.id",
  "(SELECT * FROM content.good ORDER BY id LIMIT 7) g",
  "(SELECT * FROM content.good WHERE at < now()) g",
  "(SELECT * FROM content.good WHERE id NOT IN (SELECT good_id FROM content.remark)) g",
];
/** What people say of tables, rightly or wrongly. */
const SAID = [
  { "content.good": { on_change: "everything" } },
  { "content.remark": { on_change: "ignore" } },
  { "content.band": { on_change: "everything" } },
  { "content.good": { key_columns: ["id"] } },
  { "content.good": { key_columns: ["title"] } },
  { "content.good": { key_columns: ["id", "title"] } },
  { "content.good": { keys: "SELECT id FROM changed" } },
  { "content.remark": { keys: "SELECT g.id FROM changed c JOIN present.good g ON g.id = c.good_id" } },
  { "content.good": { keys: "SELECT nonsense FROM changed" } },
  { "content.nobody": { on_change: "ignore" } },
];
const ODD_KEYS = [["mood"], ["share"], ["title"], ["id", "at"], ["price"], [], ["nobody"]];

/** What happens between two rounds, and how it is undone for the next pipeline. */
const EVENTS = [
  ["SELECT", "SELECT"],
  [
    "UPDATE content.good SET title = 'much longer' WHERE id > 50",
    "UPDATE content.good SET title = 't' || id WHERE id > 50",
  ],
  [
    "INSERT INTO content.keyless SELECT * FROM content.keyless WHERE id = 3",
    "DELETE FROM content.keyless WHERE id = 3 AND ctid <> (SELECT min(ctid) FROM content.keyless WHERE id = 3)",
  ],
  [
    "INSERT INTO content.keyless (title, at) VALUES ('another', now())",
    "DELETE FROM content.keyless WHERE title = 'another'",
  ],
  ["INSERT INTO content.remark VALUES (12, 'late')", "DELETE FROM content.remark WHERE note = 'late'"],
] as const;

const followed = fc.record({
  ...shared,
  from: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...FOLLOWABLE) },
    { weight: 1, arbitrary: fc.constantFrom(...UNFOLLOWABLE) },
  ),
  key: mostly<readonly string[]>([["id"]], ODD_KEYS),
  flaw: mostly([""], FLAWS),
  tables: mostly<object>([{}], SAID),
  target: fc.option(
    targetOf(
      [...Array(12).fill("text"), ...TARGET_TYPES],
      ["", "", "", "", ", own text NOT NULL"],
      mostly([false], [true]),
    ),
    {
      freq: 2,
    },
  ),
  create_target: mostly([true], [false]),
  event: fc.constantFrom(...EVENTS),
});

/** Valid at first, and refused once something has happened. */
const USUAL = {
  columns: ["title"],
  flaw: "",
  key: ["id"],
  tables: {},
  create_target: true,
  add_columns: false,
  max_rejects: 1,
};
const EXAMPLES = [
  { ...USUAL, from: "content.good g", target: { types: ["varchar(9)"], missing: false, own: "" }, event: EVENTS[1] },
  { ...USUAL, from: "content.keyless g", target: null, event: EVENTS[2] },
  { ...USUAL, from: "content.keyless g", target: null, event: EVENTS[3] },
];

let number = 0;

/** A name of its own, with the table where there is to be one. */
async function createTarget(columns: readonly string[], target: Target | null): Promise<string> {
  number += 1;
  const target_table = `analytics.v${number}`;
  if (target === null) return target_table;
  const given = columns.map((column) => / AS (.*)/.exec(column)?.[1] ?? column);
  const names = [...new Set(given)].filter((name) => name !== "id");
  const kept = target.missing ? names.slice(1) : names;
  const defined = kept.map((name, n) => `, ${name} ${target.types[n]}`).join("");
  await bench.query(`CREATE TABLE ${target_table} (id bigint PRIMARY KEY, at timestamptz${defined}${target.own});
    ALTER TABLE ${target_table} OWNER TO vitrina_writer`);
  return target_table;
}

/** Validates, runs, and compares the two. Returns whether it was valid. */
async function judgeAlike(config: object, pipeline: Pipeline): Promise<boolean> {
  const { body, status, text } = await bench.post(`/api/v1/pipelines/${pipeline.id}/validate`);
  expect(status, text).toBe(200);
  const errors = (body.problems as { code: string; severity: string }[]).filter(({ severity }) => severity === "error");
  const run = await bench.run(pipeline);
  const judged = { config, valid: body.valid, errors, run: run.status, code: run.error_code, error: run.error };
  // Rows that would be refused are told for what they are.
  const codes = run.error_code === "TOO_MANY_REJECTS" ? ["KEY_NULL_IN_SOURCE", "TOO_MANY_REJECTS"] : [run.error_code];
  if (run.status === "SUCCESS") expect(judged).toMatchObject({ valid: true });
  else {
    expect(judged).toMatchObject({ valid: false });
    expect({ ...judged, told: errors.filter(({ code }) => codes.includes(code)) }).not.toMatchObject({ told: [] });
  }
  return body.valid;
}

it("R3.4 a pipeline is valid exactly when its run succeeds, and what is refused is refused with the same code", async () => {
  const seen = { valid: 0, refused: 0 };
  const scenarios = fc.sample(scenario, { seed: 11, numRuns: 20 });
  for (const { source, columns, flaw, key, mode, target, ...flags } of scenarios) {
    const config = {
      target_table: await createTarget(columns, target),
      source_query: `SELECT id, at, ${columns.join(", ")}${flaw} FROM content.${source}`,
      target_key: key,
      batch_size: 20,
      ...(mode === "incremental" && { mode, incremental_key: "at", incremental_id_key: "id" }),
      ...flags,
    };
    seen[(await judgeAlike(config, await bench.create(config))) ? "valid" : "refused"] += 1;
  }
  expect(Math.min(seen.valid, seen.refused)).toBeGreaterThan(3);
});

const TOUCH = ["good", "twice", "keyless", "parted", "fleeting"].map(
  (name) => `UPDATE content.${name} SET at = at + interval '1 s'`,
);

it("so is one that follows, before everything is compared and before a round that touches every key", async () => {
  const seen = { valid: 0, refused: 0, refusedLater: 0 };
  const scenarios = [...EXAMPLES, ...fc.sample(followed, { seed: SEED, numRuns: runs(14, 150) })];
  for (const { from, columns, flaw, key, tables, target, event, ...flags } of scenarios) {
    const config = {
      target_table: await createTarget(columns, target),
      source_query: `SELECT g.id, at, ${columns.join(", ")}${flaw} FROM ${from}`,
      target_key: key,
      batch_size: 20,
      mode: "follow",
      follow: { check_every_seconds: 3600, tables },
      max_delete_percent: 100,
      ...flags,
    };
    const pipeline = await bench.create(config);
    const isValid = await judgeAlike(config, pipeline);
    seen[isValid ? "valid" : "refused"] += 1;
    if (!isValid) continue;
    const [happens, undone] = event;
    await bench.query([...TOUCH, happens].join("; "));
    if (!(await judgeAlike({ ...config, event }, pipeline))) seen.refusedLater += 1;
    await bench.query(undone);
  }
  expect(seen.refused).toBeGreaterThan(2);
  expect(seen.valid - seen.refusedLater).toBeGreaterThan(2);
  expect(seen.refusedLater).toBeGreaterThanOrEqual(EXAMPLES.length);
});
