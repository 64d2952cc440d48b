import fc from "fast-check";
import pg from "pg";
import { inject } from "vitest";
import type { LogPlace } from "../../src/connectors/postgres/changes/change-log.ts";
import { readQueryFacts } from "../../src/connectors/postgres/changes/query-facts.ts";
import type { FollowTables } from "../../src/domain/follow.ts";
import type { FollowPlan } from "../../src/sql-analysis/follow-plan.ts";
import { planFollow } from "../../src/sql-analysis/plan-follow.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import type { SlotServer } from "../support/slot-server.ts";
import { LateCommits } from "./late-commit.ts";
import type { FollowedQuery } from "./queries.ts";
import { byChangeTable, bySlot, type ChangeRecorder, type RecordedChanges } from "./recorders.ts";
import { SCHEMA, TABLES } from "./schema.ts";

/** Follows queries without the engine: one snapshot per round, keys by the plan's statements, rows by the restricted query. */

export interface FollowingDatabase {
  readonly recorder: ChangeRecorder;
  readonly database: TestDatabase;
  readonly client: pg.Client;
  /** A second session, for a transaction that stays open. */
  readonly other: pg.Client;
  /** A third one, where the server can make it wait: its transactions are committed before anybody sees them. */
  readonly late: LateCommits | undefined;
  plan(query: FollowedQuery, tables?: FollowTables): Promise<FollowPlan>;
  close(): Promise<void>;
}

/** On a server of its own some commits wait for a standby, and are seen by nobody meanwhile. */
export async function openFollowing(
  server?: SlotServer,
  log: "a change table" | "a slot" = "a change table",
): Promise<FollowingDatabase> {
  const database = await createTestDatabase(server?.url ?? inject("postgresUrl"), { empty: true });
  await database.query(SCHEMA);
  const recorder = await (log === "a slot" ? bySlot : byChangeTable)(database);
  const [client, other] = [new pg.Client(database.url), new pg.Client(database.url)] as const;
  await client.connect();
  await other.connect();
  const late = server && (await LateCommits.open(database.url));
  return {
    recorder,
    database,
    client,
    other,
    late,
    async plan({ sql, key }, tables = {}) {
      return planFollow(await readQueryFacts(client, sql), key, tables);
    },
    async close() {
      await client.end();
      await other.end();
      await late?.close();
      await recorder.close();
      await database.drop();
    },
  };
}

const value = (type: string): fc.Arbitrary<string> => {
  const text = fc.constantFrom("NULL", "'a'", "'b'", "'c'", "'d'");
  if (type === "int")
    return fc.oneof(
      { weight: 1, arbitrary: fc.constant("NULL") },
      // Some ids are met often, so that groups and joins have more than one row.
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 4 }).map(String) },
      { weight: 5, arbitrary: fc.integer({ min: 1, max: 12 }).map(String) },
    );
  if (type === "text") return text;
  return fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 3 }).map((items) => `'{${items.join(",")}}'`);
};

const insert = (table: string): fc.Arbitrary<string> =>
  fc
    .tuple(...Object.values(TABLES[table] ?? {}).map(value))
    .map((values) => `INSERT INTO content.${table} VALUES (${values.join(", ")})`);

const free = (table: string, picked: string): string =>
  `WHERE ctid = ANY (ARRAY(SELECT ctid FROM content.${table} ${picked} FOR UPDATE SKIP LOCKED))`;

/**
 * Any row that a condition picks; the number of rows stays small and about the same. Rows that a transaction has which has not
 * ended are passed over: it is we who end it.
 */
const statementOn = (table: string): fc.Arbitrary<string> => {
  const columns = Object.entries(TABLES[table] ?? {});
  const pick = fc
    .constantFrom(...columns.filter(([, type]) => type === "int"))
    .chain(([name]) => fc.integer({ min: 1, max: 12 }).map((number) => `WHERE ${name} = ${number} ORDER BY ctid`));
  const [one, all] = [
    pick.map((picked) => free(table, `${picked} LIMIT 1`)),
    pick.map((picked) => free(table, picked)),
  ];
  const update = fc
    .tuple(
      fc.constantFrom(...columns).chain(([name, type]) => value(type).map((next) => `${name} = ${next}`)),
      fc.oneof(one, all),
    )
    .map(([set, where]) => `UPDATE content.${table} SET ${set} ${where}`);
  const remove = one.map((where) => `DELETE FROM content.${table} ${where}`);
  return fc.oneof(
    { weight: 3, arbitrary: insert(table) },
    { weight: 5, arbitrary: update },
    { weight: 3, arbitrary: remove },
  );
};

const change = fc.constantFrom(...Object.keys(TABLES)).chain(statementOn);

/** What happens between two rounds. */
export interface Step {
  /** Comes first: a table is truncated, and gets other rows. */
  readonly emptied: readonly string[];
  /** Statements of each transaction. */
  readonly transactions: readonly (readonly string[])[];
  /** What a transaction of the other session does that is open meanwhile, and whether it then ends. */
  readonly aside: readonly string[];
  readonly asideEnds: boolean;
  /** What is committed and not seen yet, and whether it is seen afterwards. */
  readonly late: readonly string[];
  readonly lateEnds: boolean;
}

/** Nothing in most steps. */
const aside = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  {
    weight: 1,
    arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }),
  },
);

/** A table is left with about as many rows as before. */
const emptying = fc
  .constantFrom(...Object.keys(TABLES))
  .chain((table) =>
    fc
      .array(insert(table), { minLength: 4, maxLength: 12 })
      .map((inserts) => [`TRUNCATE content.${table}`, ...inserts]),
  );

const NOTHING = fc.constant([]);
const transactions = fc.array(fc.array(change, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 });

export const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  emptied: fc.oneof({ weight: 7, arbitrary: NOTHING }, { weight: 1, arbitrary: emptying }),
  transactions,
  aside,
  asideEnds: fc.boolean(),
  late: aside,
  lateEnds: fc.boolean(),
});

/** Nobody keeps the table from being truncated, if it comes first. */
export const emptyingStep: fc.Arbitrary<Step> = fc.record({
  emptied: emptying,
  transactions,
  aside: NOTHING,
  asideEnds: fc.boolean(),
  late: NOTHING,
  lateEnds: fc.boolean(),
});

/** Rows are changed and deleted by transactions that are not seen at the end of it: by chance alone few steps have that. */
export const holdingStep: fc.Arbitrary<Step> = fc.record({
  emptied: NOTHING,
  transactions,
  aside: fc.constant([
    `UPDATE content.rating SET film_id = 1 + film_id % 12 ${free("rating", "ORDER BY ctid LIMIT 3")}`,
    `DELETE FROM content.film_genre ${free("film_genre", "ORDER BY ctid LIMIT 2")}`,
  ]),
  asideEnds: fc.constant(false),
  late: fc.constant([
    `UPDATE content.film SET studio_id = 1 + id % 12, country_id = NULL ${free("film", "ORDER BY ctid DESC LIMIT 3")}`,
    `DELETE FROM content.studio ${free("studio", "ORDER BY ctid LIMIT 2")}`,
  ]),
  lateEnds: fc.constant(false),
});

export async function fill(client: pg.Client, rowsPerTable: number): Promise<void> {
  for (const table of Object.keys(TABLES)) {
    for (const sql of fc.sample(insert(table), rowsPerTable)) await client.query(sql);
  }
}

/** A mart that follows its query. */
export interface Mart {
  readonly query: FollowedQuery;
  readonly plan: FollowPlan;
  readonly table: string;
}

/** The plan of a query, with every change of a table that cannot be followed meaning everything. */
export async function planAsFarAsPossible(following: FollowingDatabase, query: FollowedQuery): Promise<FollowPlan> {
  const plan = await following.plan(query);
  const refused = plan.refusals.flatMap(({ table }) => table ?? []);
  if (refused.length === 0) return plan;
  return following.plan(
    query,
    Object.fromEntries(refused.map((table) => [table, { on_change: "everything" as const }])),
  );
}

export async function createMart(
  client: pg.Client,
  query: FollowedQuery,
  plan: FollowPlan,
  number: number,
): Promise<Mart> {
  const table = `marts.m${number}`;
  await client.query(`DROP TABLE IF EXISTS ${table}; CREATE TABLE ${table} AS ${rowsNow(query)}`);
  return { query, plan, table };
}

/** Rows without a key are in no mart. */
const rowsNow = ({ sql, key }: FollowedQuery): string =>
  `SELECT * FROM (${sql}) q WHERE ${key.map((name) => `"${name}" IS NOT NULL`).join(" AND ")}`;

interface FollowResult extends RoundResult {
  readonly rounds: number;
  /** Rows that a transaction changed or deleted which was open during a round, or committed and not seen. */
  readonly oldOfOpen: number;
  readonly place: LogPlace;
}

/** Steps of one database with its marts; ends with the first violation, or with a look at all marts when nothing is left open. */
export async function follow(
  { recorder, client, other, late }: FollowingDatabase,
  marts: readonly Mart[],
  steps: readonly Step[],
  since: LogPlace,
): Promise<FollowResult> {
  const total = { rounds: 0, oldOfOpen: 0, comparisons: 0, keys: 0, emptied: 0, violated: [] as string[] };
  let [place, isOpen] = [since, false];
  const round = async (which: "concerned" | "all"): Promise<void> => {
    const { result, place: next } = await followRound(client, recorder, marts, place, which);
    place = next;
    total.rounds += 1;
    total.comparisons += result.comparisons;
    total.keys += result.keys;
    total.emptied += result.emptied;
    total.violated.push(...result.violated.map((name) => `${name}, round ${total.rounds}`));
  };
  for (const step of steps) {
    if (!isOpen && step.aside.length > 0) await other.query("BEGIN");
    isOpen ||= step.aside.length > 0;
    for (const sql of step.aside) total.oldOfOpen += oldRows([await other.query(sql)]);
    if (late?.isWaiting === false && step.late.length > 0) {
      total.oldOfOpen += oldRows(await late.commit(step.late, client));
    }
    if (step.emptied.length > 0) await emptyIfUnlocked(client, step.emptied);
    for (const statements of step.transactions) await client.query(`BEGIN; ${statements.join("; ")}; COMMIT`);
    await round("concerned");
    if (total.violated.length > 0) break;
    if (isOpen && step.asideEnds) {
      await other.query("COMMIT");
      isOpen = false;
    }
    if (late?.isWaiting && step.lateEnds) await late.release(client);
  }
  if (late?.isWaiting) await late.release(client);
  if (isOpen) await other.query("COMMIT");
  if (total.violated.length === 0) await round("all");
  return { ...total, place };
}

function oldRows(results: readonly pg.QueryResult[]): number {
  return results.reduce((sum, { command, rowCount }) => sum + (/UPDATE|DELETE/.test(command) ? (rowCount ?? 0) : 0), 0);
}

/** Whoever wrote the table and has not ended would be waited for, and it is we who end them. */
async function emptyIfUnlocked(client: pg.Client, statements: readonly string[]): Promise<void> {
  try {
    await client.query(`BEGIN; SET LOCAL lock_timeout = 1; ${statements.join("; ")}; COMMIT`);
  } catch (error) {
    if ((error as pg.DatabaseError).code !== "55P03") throw error;
    await client.query("ROLLBACK");
  }
}

interface RoundResult {
  readonly comparisons: number;
  readonly keys: number;
  /** Tables that were truncated. */
  readonly emptied: number;
  /** Names of queries whose mart differs. */
  readonly violated: readonly string[];
}

/** One round for all marts, at one snapshot. Compares those that changes concern, or all. Returns the next one's start. */
async function followRound(
  client: pg.Client,
  recorder: ChangeRecorder,
  marts: readonly Mart[],
  since: LogPlace,
  which: "concerned" | "all",
): Promise<{ place: LogPlace; result: RoundResult }> {
  const recorded = await recorder.begin(client, since);
  const { touched, emptied } = recorded;
  const violated: string[] = [];
  let [comparisons, keys] = [0, 0];
  for (const mart of marts) {
    const ofMart = mart.plan.tables.filter(({ name }) => touched.has(name));
    if (ofMart.some(({ name, change: meant }) => meant.kind === "everything" || emptied.has(name))) {
      await client.query(`TRUNCATE ${mart.table}; INSERT INTO ${mart.table} ${rowsNow(mart.query)}`);
      continue;
    }
    if (ofMart.length > 0) keys += await bringUpToDate(client, mart, recorded);
    else if (which === "concerned") continue;
    comparisons += 1;
    if (await differs(client, mart)) violated.push(mart.query.name);
  }
  await client.query("COMMIT");
  return { place: recorded.place, result: { comparisons, keys, emptied: emptied.size, violated } };
}

/** Returns how many keys that were. */
export async function bringUpToDate(
  client: pg.Client,
  { query, plan, table }: Mart,
  { touched, newImages }: Pick<RecordedChanges, "touched" | "newImages">,
): Promise<number> {
  const { images, values } = newImages();
  const statements = plan.tables.flatMap(({ name, change: { ...meant } }) =>
    meant.kind === "keys" && touched.has(name) ? [meant.statement(images)] : [],
  );
  const names = query.key.map((name) => `"${name}"`);
  const found = await client.query(
    `SELECT DISTINCT ${names.map((name) => `k.${name}::text AS ${name}`).join(", ")}
       FROM (${statements.map((one) => `SELECT * FROM (${one}) s`).join(" UNION ALL ")}) k`,
    [...values],
  );
  const whole = found.rows.filter((row) => query.key.every((name) => row[name] !== null));
  const keys = whole.map((row) => query.key.map((name) => String(row[name])));
  const columns = query.key.map((_, index) => keys.map((row) => row[index]));
  const given = query.key.map((_, index) => `$${index + 1}::text[]`).join(", ");
  await client.query(
    `DELETE FROM ${table} WHERE (${names.map((name) => `${name}::text COLLATE "C"`).join(", ")}) IN (SELECT * FROM unnest(${given}) AS given)`,
    columns,
  );
  if (keys.length > 0) await client.query(`INSERT INTO ${table} ${plan.restrictedTo(keys)}`);
  return keys.length;
}

export async function differs(client: pg.Client, { query, table }: Mart): Promise<boolean> {
  const now = rowsNow(query);
  const { rows } = await client.query(
    `SELECT EXISTS ((TABLE ${table}) EXCEPT ALL (${now})) OR EXISTS ((${now}) EXCEPT ALL (TABLE ${table})) AS differs`,
  );
  return rows[0]?.differs === true;
}
