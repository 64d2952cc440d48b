import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Chaos, openChaos } from "../support/chaos.ts";
import { createRecorded, lastRunOf, recordChangesOf, untilFollowing, untilStatus } from "../support/chaos-follow.ts";
import { untilEqual, violations } from "../support/followed-marts.ts";
import { LONG } from "../support/long.ts";

/**
 * What happens to a source without any row trigger telling of it, while a mart follows by itself in a runner process.
 * Nobody asks for a run: the mart is right in the end, or its pipeline says what a person must do.
 */

interface Happening {
  /** What happens to `content.x_a`, `content.x_b` and so on. */
  readonly what: string;
  readonly create?: (x: string) => string;
  readonly query?: (x: string) => string;
  readonly faults: (x: string) => readonly string[];
  /** The run notes it; or it fails with the code, and a person does something about it. */
  readonly reason?: RegExp;
  /** Also outside `npm run test:chaos`. */
  readonly isTypical?: true;
  readonly refused?: { readonly code: string; readonly remedy: (x: string) => readonly string[] };
}

/** Rows a and b belong together by a column, and each mart has a key of its own. */
const PLAIN = (x: string): string => `
  CREATE TABLE content.${x}_a (id bigint PRIMARY KEY, b_id bigint, title text);
  CREATE TABLE content.${x}_b (id bigint PRIMARY KEY, name text);
  CREATE INDEX ON content.${x}_a (b_id);
  INSERT INTO content.${x}_b SELECT n, 'b ' || n FROM generate_series(1, 10) n;
  INSERT INTO content.${x}_a SELECT n, n % 10 + 1, 'a ' || n FROM generate_series(1, 60) n`;
const JOINED = (x: string): string =>
  `SELECT a.id, a.title, b.name FROM content.${x}_a a LEFT JOIN content.${x}_b b ON b.id = a.b_id`;

const IN_PARTS = (x: string): string => `
  CREATE TABLE content.${x}_b (id bigint PRIMARY KEY, name text);
  INSERT INTO content.${x}_b SELECT n, 'b ' || n FROM generate_series(1, 10) n;
  CREATE TABLE content.${x}_a (id bigint PRIMARY KEY, b_id bigint, title text) PARTITION BY RANGE (id);
  CREATE TABLE content.${x}_a1 PARTITION OF content.${x}_a FOR VALUES FROM (0) TO (30);
  CREATE TABLE content.${x}_a2 PARTITION OF content.${x}_a FOR VALUES FROM (30) TO (1000);
  CREATE INDEX ON content.${x}_a (b_id);
  INSERT INTO content.${x}_a SELECT n, n % 10 + 1, 'a ' || n FROM generate_series(1, 60) n`;

const RUN_SCRIPT = { code: "CHANGES_NOT_RECORDED", remedy: () => [] };
const ALTERED = /Columns of content\.\w+ were altered\./;
const REWRITTEN = /content\.\w+ was truncated or rewritten\./;
const PARTS = /A partition of content\.\w+_a was attached or removed\./;
const SWITCHED = /The trigger on content\.\w+_a was switched off or on, or recreated\./;

const HAPPENINGS: readonly Happening[] = [
  {
    what: "the values of a key are computed again by ALTER TYPE USING",
    isTypical: true,
    faults: (x) => [`ALTER TABLE content.${x}_a ALTER id TYPE bigint USING id + 1000`],
    reason: REWRITTEN,
  },
  {
    what: "the values of a join column are computed again, and get another type",
    faults: (x) => [`ALTER TABLE content.${x}_a ALTER b_id TYPE integer USING b_id % 10 + 1`],
    // The way from the other table to the key goes by this column.
    reason: /The query, its key, or what is derived from it is another than before\./,
  },
  {
    what: "the values of a plain column are computed again in the same type",
    faults: (x) => [`ALTER TABLE content.${x}_b ALTER name TYPE text USING upper(name)`],
    reason: REWRITTEN,
  },
  {
    what: "the key of a table gets a type that the target does not take",
    faults: (x) => [`ALTER TABLE content.${x}_a ALTER id TYPE text USING 'film ' || id`],
    refused: {
      code: "TARGET_TYPE_MISMATCH",
      remedy: (x) => [`ALTER TABLE content.${x}_a ALTER id TYPE bigint USING substr(id, 6)::bigint + 7`],
    },
  },
  {
    what: "a partition is attached with its rows",
    create: IN_PARTS,
    faults: (x) => [
      `CREATE TABLE content.${x}_a3 (id bigint PRIMARY KEY, b_id bigint, title text)`,
      `INSERT INTO content.${x}_a3 VALUES (1001, 1, 'brought along')`,
      `ALTER TABLE content.${x}_a ATTACH PARTITION content.${x}_a3 FOR VALUES FROM (1000) TO (2000)`,
    ],
    reason: PARTS,
  },
  {
    what: "a partition is detached",
    create: IN_PARTS,
    faults: (x) => [`ALTER TABLE content.${x}_a DETACH PARTITION content.${x}_a1`],
    reason: PARTS,
  },
  {
    what: "a partition is detached while others read",
    create: IN_PARTS,
    faults: (x) => [`ALTER TABLE content.${x}_a DETACH PARTITION content.${x}_a1 CONCURRENTLY`],
    reason: PARTS,
  },
  {
    what: "a partition is dropped",
    create: IN_PARTS,
    faults: (x) => [`DROP TABLE content.${x}_a1`],
    reason: PARTS,
  },
  {
    what: "a partition is replaced by another with the same name",
    isTypical: true,
    create: IN_PARTS,
    faults: (x) => [
      `BEGIN; ALTER TABLE content.${x}_a DETACH PARTITION content.${x}_a1; ALTER TABLE content.${x}_a1 RENAME TO ${x}_old;
       CREATE TABLE content.${x}_a1 PARTITION OF content.${x}_a FOR VALUES FROM (0) TO (30);
       INSERT INTO content.${x}_a1 SELECT id, b_id, 'swapped ' || title FROM content.${x}_old; COMMIT`,
    ],
    reason: PARTS,
  },
  {
    what: "the trigger is off while rows change, and then on as it was",
    isTypical: true,
    faults: (x) => [
      `ALTER TABLE content.${x}_a DISABLE TRIGGER USER`,
      `UPDATE content.${x}_a SET title = 'unseen' WHERE id = 7; DELETE FROM content.${x}_a WHERE id = 8`,
      `DO $$ DECLARE t text; BEGIN
         FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'content.${x}_a'::regclass AND NOT tgisinternal
         LOOP EXECUTE format('ALTER TABLE content.${x}_a ENABLE ALWAYS TRIGGER %I', t); END LOOP; END $$`,
    ],
    reason: SWITCHED,
  },
  {
    what: "the trigger is switched on again for the application's changes only",
    faults: (x) => [
      `ALTER TABLE content.${x}_a DISABLE TRIGGER ALL`,
      `UPDATE content.${x}_a SET title = 'unseen' WHERE id = 7`,
      `ALTER TABLE content.${x}_a ENABLE TRIGGER ALL`,
    ],
    refused: RUN_SCRIPT,
  },
  {
    what: "the trigger is dropped",
    isTypical: true,
    faults: (x) => [
      `DO $$ DECLARE t text; BEGIN
         FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'content.${x}_a'::regclass AND NOT tgisinternal
         LOOP EXECUTE format('DROP TRIGGER %I ON content.${x}_a', t); END LOOP; END $$`,
      `UPDATE content.${x}_a SET title = 'unseen' WHERE id = 7`,
    ],
    refused: RUN_SCRIPT,
  },
  {
    what: "several tables are truncated at once, by their foreign keys",
    create: (x) => `${PLAIN(x)}; ALTER TABLE content.${x}_a ADD FOREIGN KEY (b_id) REFERENCES content.${x}_b`,
    faults: (x) => [
      `TRUNCATE content.${x}_b CASCADE`,
      `INSERT INTO content.${x}_b VALUES (1, 'new'); INSERT INTO content.${x}_a VALUES (1, 1, 'new')`,
    ],
    reason: REWRITTEN,
  },
  {
    what: "a view that the query reads shows something else",
    isTypical: true,
    create: (x) => `${PLAIN(x)};
      CREATE VIEW content.${x}_v AS ${JOINED(x)}; CREATE VIEW content.${x}_w AS SELECT * FROM content.${x}_v`,
    query: (x) => `SELECT id, title, name FROM content.${x}_w`,
    faults: (x) => [
      `CREATE OR REPLACE VIEW content.${x}_v AS
         SELECT a.id, upper(a.title) AS title, b.name FROM content.${x}_a a JOIN content.${x}_b b ON b.id = a.b_id WHERE a.id > 5`,
    ],
    reason: /The view content\.\w+_v was altered\./,
  },
  {
    what: "a table is replaced by another that gets its name",
    faults: (x) => [
      `BEGIN; CREATE TABLE content.${x}_new (LIKE content.${x}_a INCLUDING ALL);
       INSERT INTO content.${x}_new SELECT id, b_id, 'swapped ' || title FROM content.${x}_a;
       ALTER TABLE content.${x}_a RENAME TO ${x}_old; ALTER TABLE content.${x}_new RENAME TO ${x}_a; COMMIT`,
      `UPDATE content.${x}_a SET title = 'unseen' WHERE id = 7`,
    ],
    refused: RUN_SCRIPT,
  },
  {
    what: "two columns change their names with each other",
    create: (x) =>
      `${PLAIN(x)}; ALTER TABLE content.${x}_b ADD other text; UPDATE content.${x}_b SET other = 'o ' || id`,
    faults: (x) => [
      `BEGIN; ALTER TABLE content.${x}_b RENAME name TO spare; ALTER TABLE content.${x}_b RENAME other TO name;
       ALTER TABLE content.${x}_b RENAME spare TO other; COMMIT`,
    ],
    reason: ALTERED,
  },
  {
    what: "a column is dropped, and made again with other values",
    faults: (x) => [
      `ALTER TABLE content.${x}_b DROP name`,
      `UPDATE content.${x}_b SET id = 11 WHERE id = 10`,
      `ALTER TABLE content.${x}_b ADD name text DEFAULT 'made again'`,
    ],
    reason: ALTERED,
  },
  {
    what: "a table gets row-level security, so that its reader sees nothing",
    isTypical: true,
    faults: (x) => [`ALTER TABLE content.${x}_b ENABLE ROW LEVEL SECURITY`],
    refused: {
      code: "FOLLOW_REFUSED",
      remedy: (x) => [
        `ALTER TABLE content.${x}_b DISABLE ROW LEVEL SECURITY`,
        `UPDATE content.${x}_b SET name = 'seen' WHERE id = 1`,
      ],
    },
  },
];

let chaos: Chaos;
beforeAll(async () => {
  chaos = await openChaos("stream");
  chaos.runner(undefined, { RUNNER_CONCURRENCY: "6" });
});
afterAll(() => chaos?.close());

const CASES = HAPPENINGS.map((happening, n) => [happening.what, { x: `x${n}`, ...happening }] as const);
const typical = CASES.filter(([, { isTypical }]) => LONG || isTypical);
it.concurrent.for(typical)("%s", async ([, { x, create = PLAIN, query = JOINED, faults, reason, refused }]) => {
  await chaos.query(create(x));
  const films = await following(x, query(x));

  await chaos.query("UPDATE etl.etl_pipelines SET enabled = false WHERE id = $1", [films.id]);
  for (const statement of faults(x)) await chaos.query(statement);
  expect(await sourceAsRead(films), "the fault changes what the query gives").not.toEqual(await rowsOf(films));
  await chaos.query("UPDATE etl.etl_pipelines SET enabled = true WHERE id = $1", [films.id]);

  if (refused !== undefined) {
    await untilStatus(chaos, films, "FAILED");
    expect(await lastRunOf(chaos, films)).toMatchObject({ status: "FAILED", error_code: refused.code });
    for (const statement of refused.remedy(x)) await chaos.query(statement);
    await recordChangesOf(chaos.database, films);
    // If the repair took more than a minute, it may have started by itself.
    await chaos.store.requests.run(films.id, "api").catch(() => undefined);
  }
  await untilEqual(chaos, films);
  await untilStatus(chaos, films, "IDLE");
  if (reason !== undefined) expect((await lastRunOf(chaos, films)).notes.join(" ")).toMatch(reason);

  // It goes on, and compares everything no more.
  await chaos.query(`UPDATE content.${x}_a SET title = 'followed' WHERE id = (SELECT max(id) FROM content.${x}_a)`);
  await untilEqual(chaos, films);
  await untilStatus(chaos, films, "IDLE");
  expect(await lastRunOf(chaos, films)).toMatchObject({ status: "SUCCESS", strategy: "follow" });
  expect(await violations(chaos, films)).toEqual([]);
});

/** A mart that has followed a change already. */
async function following(name: string, source_query: string): Promise<Pipeline> {
  const pipeline = await createRecorded(chaos, name, source_query);
  await untilFollowing(chaos, pipeline);
  await chaos.query(`UPDATE content.${name}_a SET title = 'first' WHERE id = 3`);
  await untilEqual(chaos, pipeline);
  await untilStatus(chaos, pipeline, "IDLE");
  return pipeline;
}

const rowsOf = ({ target_table }: Pipeline): Promise<unknown> =>
  chaos.query(`SELECT t::text AS row FROM ${target_table} t ORDER BY 1`);

/** With the rights of the reader. */
async function sourceAsRead({ source_query }: Pipeline): Promise<unknown> {
  const reader = new pg.Client({ connectionString: chaos.database.urls.reader });
  await reader.connect();
  try {
    return (await reader.query(`SELECT t::text AS row FROM (${source_query}) t ORDER BY 1`)).rows;
  } finally {
    await reader.end();
  }
}
