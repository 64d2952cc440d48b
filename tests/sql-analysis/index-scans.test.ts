import { afterAll, beforeAll, expect, it } from "vitest";
import { type FollowingDatabase, openFollowing } from "./following.ts";
import { QUERIES } from "./queries.ts";
import { TABLES } from "./schema.ts";

/**
 * Where every column has an index, the statements that find the keys of a few changes use them, and so does the query
 * that is restricted to a few keys: no table is read as a whole.
 */

/** Partitions with other keys, and a comparison of the query's own by IS NOT DISTINCT FROM: no key can be put inside. */
const NO_KEY_INSIDE = [
  "rank within another column",
  "two windows",
  "distinct on another column",
  "window over a join, then joined",
  "one partition or another",
  "null partitions",
  "partitions by two columns, one of them an array",
  "rank of groups",
  "window of a subquery's value",
  "windows that name one another",
  "optional window",
  "same as, with nulls",
];
/** The planner knows no statistics of rows that are there together with those that were, and expects too many far away. */
const FOUND_BY_WHOLE_TABLES = [
  "window over a join, then joined",
  "two levels of parents",
  "aggregate of subqueries over two optional sides",
  "subquery beside an aggregate of no rows",
  "key made of two tables",
];
/** Nothing inside equals the key, or it is computed: slow, and right. */
const READ_AS_A_WHOLE = [
  ...NO_KEY_INSIDE,
  "expression key",
  "CTE twice, materialized",
  "in, of groups",
  "unnest on the way",
  "views of views",
  "key made of two tables",
];

const ROWS = 5000;
/** The planner is told that there are so many times as many: small tables are rightly read as a whole. */
const TOLD = 400;
/** Each number on a few rows, so that an index is worth its while. */
const VALUES: Readonly<Record<string, (place: number) => string>> = {
  int: (place) => `(n * ${7 + place} + ${place}) % ${ROWS}`,
  text: () => "'text ' || n",
  "text[]": () => "ARRAY['a', 't' || n]",
};

let following: FollowingDatabase;
beforeAll(async () => {
  following = await openFollowing();
  const { client } = following;
  for (const [table, columns] of Object.entries(TABLES)) {
    const values = Object.values(columns).map((type, place) => VALUES[type]?.(place));
    const indexed = Object.keys(columns).filter((name) => columns[name] !== "text[]");
    await client.query(`INSERT INTO content.${table} SELECT ${values.join(", ")} FROM generate_series(1, ${ROWS}) n;
      ${indexed.map((name) => `CREATE INDEX ON content.${table} (${name})`).join("; ")}`);
  }
  await client.query("VACUUM ANALYZE");
  await client.query(`UPDATE pg_class SET reltuples = ${TOLD} * reltuples
    WHERE relnamespace = 'content'::regnamespace AND relkind IN ('r', 'i')`);
  // The first as in sessions that read a source.
  await client.query("SET jit = off; SET max_parallel_workers_per_gather = 0");
});
afterAll(() => following.close());

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PlanNode[];
}

/** Also by an index from its beginning to its end. */
function readAsAWhole(node: PlanNode): string[] {
  const { "Node Type": type, "Relation Name": table = "", "Index Cond": condition, Plans: below = [] } = node;
  const isWhole = table in TABLES && (type === "Seq Scan" || (type.startsWith("Index") && condition === undefined));
  return [...(isWhole ? [table] : []), ...below.flatMap(readAsAWhole)];
}

async function isByIndexes(statement: string, values: readonly unknown[] = []): Promise<boolean> {
  const { rows } = await following.client.query(`EXPLAIN (FORMAT JSON) ${statement}`, [...values]);
  const [{ Plan: plan }] = rows[0]["QUERY PLAN"] as [{ Plan: PlanNode }];
  return readAsAWhole(plan).length === 0;
}

it("keys are found, and their rows are read, by indexes", async ({ skip }) => {
  const { client, recorder } = following;
  const { rows } = await client.query("SHOW server_version_num");
  // Others may choose otherwise.
  if (Number(rows[0]["server_version_num"]) < 180_000)
    skip("The exceptions are those of the planner of PostgreSQL 18.");
  const planned = [];
  for (const query of QUERIES) planned.push({ query, plan: await following.plan(query) });
  const since = await recorder.now(client);
  for (const [table, columns] of Object.entries(TABLES)) {
    const [column] = Object.keys(columns);
    await client.query(
      `UPDATE content.${table} SET ${column} = ${column} + 1 WHERE ctid IN (SELECT ctid FROM content.${table} LIMIT 3)`,
    );
  }
  const changes = await recorder.begin(client, since);
  const [found, read] = [new Set<string>(), new Set<string>()];
  for (const { query, plan } of planned) {
    for (const { change } of plan.tables) {
      if (change.kind !== "keys") continue;
      const { images, values } = changes.newImages();
      if (!(await isByIndexes(change.statement(images), values))) found.add(query.name);
    }
    const keys = [1, 2, 3].map((key) => query.key.map(() => String(key)));
    if (!(await isByIndexes(`SELECT q.* FROM (${plan.restrictedTo(keys)}) AS q`))) read.add(query.name);
  }
  await client.query("COMMIT");
  expect([...found].sort()).toEqual([...FOUND_BY_WHOLE_TABLES].sort());
  expect([...read].sort()).toEqual([...READ_AS_A_WHOLE].sort());
});
