import type { SqlSession } from "../../../domain/sql-session.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import type { ImagesOf } from "../../../sql-analysis/follow-plan.ts";
import type { ChangeCount, LogPlace } from "./change-log.ts";
import { imageValues } from "./images.ts";
import { CHANGES_SCHEMA, type RecordedTable, recordedName } from "./recorder.ts";
import type { ColumnFacts } from "./recording.ts";

/**
 * Reads what the triggers recorded. The changes of a round are those that its own snapshot shows and that of the position
 * does not, whenever their transactions began. So no transaction is missed because it was slow, and none comes twice.
 */

const CHANGES = `${CHANGES_SCHEMA}.changes`;

/** The first condition is for the index: whatever has ended before is visible. */
const since = (snapshot: string, alias: string): string =>
  `${alias}.xid >= pg_snapshot_xmin(${snapshot}) AND NOT pg_visible_in_snapshot(${alias}.xid, ${snapshot})`;

/** Whether the snapshot `later` shows everything that `earlier` shows. */
const sees = (later: string, earlier: string): string =>
  `(pg_snapshot_xmax(${later}) >= pg_snapshot_xmax(${earlier})
    AND NOT EXISTS (SELECT FROM pg_snapshot_xip(${later}) AS running WHERE pg_visible_in_snapshot(running, ${earlier})))`;

/** Whether a change that was seen is neither there nor forgotten. */
const vanished = (relations: string, number: string, xid: string): string =>
  `(${number} IS NOT NULL
    AND NOT EXISTS (SELECT FROM ${CHANGES} AS c WHERE c.relation = ANY (${relations}) AND c.xid = ${xid} AND c.number = ${number})
    AND NOT EXISTS (SELECT FROM ${CHANGES_SCHEMA}.tables t
                     WHERE t.relation = ANY (${relations}) AND pg_visible_in_snapshot(${xid}, t.forgotten)))`;

/** Whether changes are remembered that had been forgotten: a restored server may have run on until its snapshots look later. */
const remembered = (forgotten: string): string =>
  `EXISTS (SELECT FROM jsonb_each_text(${forgotten}) AS f (relation, snapshot) JOIN ${CHANGES_SCHEMA}.tables t USING (relation)
            WHERE t.forgotten IS NULL OR NOT ${sees("t.forgotten", "f.snapshot::pg_snapshot")})`;

const literal = (text: string): string => quoteLiteral(text).trim();

/** The images since a position: they are compared as the rows are. */
export function imagesSince(
  snapshot: string,
  tables: readonly RecordedTable[],
  columns: readonly ColumnFacts[],
): ImagesOf {
  return (table) => {
    const relation = recordedName(table);
    const wanted = tables.find((one) => recordedName(one) === relation);
    const values = imageValues(wanted, columns, (name) => `i.image ->> ${literal(name)}`);
    const from = (images: string): string =>
      `(SELECT ${values} FROM ${CHANGES} AS c CROSS JOIN LATERAL (VALUES ${images}) AS i (image)
         WHERE c.relation = ${literal(relation)} AND i.image IS NOT NULL AND ${since(`${literal(snapshot)}::pg_snapshot`, "c")})`;
    return { changed: from("(c.old), (c.new)"), old: from("(c.old)") };
  };
}

const COUNTS = `
  SELECT c.relation, count(*)::text AS count, bool_or(c.kind = 't') AS truncated,
         bool_or(c.kind = 'l' OR (c.kind = 'r' AND NOT coalesce(c.new, c.old) ?& c.columns)) AS incomplete
    FROM (SELECT c.relation, c.kind, c.old, c.new, w.columns
            FROM jsonb_to_recordset($2::jsonb) AS w (relation text, columns text[])
            JOIN ${CHANGES} AS c ON c.relation = w.relation AND ${since("$1::pg_snapshot", "c")}
           LIMIT $3::bigint) AS c
   GROUP BY c.relation ORDER BY c.relation`;

/** Stops counting at the limit. */
export async function countChanges(
  session: SqlSession,
  snapshot: string,
  tables: readonly RecordedTable[],
  limit: number,
): Promise<readonly ChangeCount[]> {
  const wanted = tables.map((table) => ({
    relation: recordedName(table),
    columns: table.imageColumns.map(({ name }) => name),
  }));
  const { rows } = await session.query(COUNTS, [snapshot, JSON.stringify(wanted), String(limit)]);
  return rows.map((row) => ({
    relation: String(row["relation"]),
    count: Number(row["count"]),
    isTruncated: isTrue(row["truncated"]),
    isIncomplete: isTrue(row["incomplete"]),
  }));
}

/** Sessions of the data path give texts. */
const isTrue = (value: unknown): boolean => value === true || value === "t";

interface SnapshotFacts {
  readonly snapshot: string;
  readonly database: string | null;
  readonly lastChange: LogPlace["lastChange"];
  readonly forgotten: LogPlace["forgotten"];
}

const DATABASE = "(SELECT d.oid FROM pg_database d WHERE d.datname = current_database())";

export async function readDatabase(session: SqlSession): Promise<string | null> {
  const { rows } = await session.query(`SELECT ${DATABASE}::text AS database`);
  return (rows[0]?.["database"] as string | null | undefined) ?? null;
}

/**
 * A standby does not tell which transactions were running: there the position counts everything from the oldest of them as
 * not seen. It is then read again, which does no harm.
 */
const SNAPSHOT = `
  SELECT CASE WHEN pg_is_in_recovery()
              THEN format('%1$s:%1$s:', pg_snapshot_xmin(pg_current_snapshot()))
              ELSE pg_current_snapshot()::text END AS snapshot,
         ${DATABASE}::text AS database,
         (SELECT jsonb_object_agg(t.relation, t.forgotten) FROM ${CHANGES_SCHEMA}.tables t
           WHERE t.relation = ANY ($1::text[]) AND t.forgotten IS NOT NULL)::text AS forgotten,
         newest.number::text AS number, newest.xid::text AS xid
    FROM (SELECT) AS one
    LEFT JOIN LATERAL (
      SELECT last.number, last.xid FROM unnest($1::text[]) AS w (relation)
       CROSS JOIN LATERAL (SELECT c.number, c.xid FROM ${CHANGES} AS c WHERE c.relation = w.relation ORDER BY c.xid DESC LIMIT 1) AS last
       ORDER BY last.xid DESC, last.number DESC LIMIT 1
    ) AS newest ON true`;

/** The snapshot of the session's transaction, and the newest change that it shows. */
export async function readSnapshot(session: SqlSession, relations: readonly string[]): Promise<SnapshotFacts> {
  const { rows } = await session.query(SNAPSHOT, [[...relations]]);
  const { snapshot, database, forgotten, number, xid } = rows[0] as Record<string, string | null>;
  return {
    snapshot: snapshot ?? "",
    database: database ?? null,
    lastChange: number == null || xid == null ? null : { number, xid },
    forgotten: JSON.parse(forgotten ?? "{}") as Record<string, string>,
  };
}

const LOST = `
  SELECT NOT ${sees("$1::pg_snapshot", "$2::pg_snapshot")} OR ${remembered("$6::jsonb")} AS back,
         (SELECT min(t.relation) FROM ${CHANGES_SCHEMA}.tables t
           WHERE t.relation = ANY ($3::text[]) AND NOT ${sees("$2::pg_snapshot", "t.forgotten")}) AS forgotten,
         ${vanished("$3::text[]", "$4::bigint", "$5::xid8")} AS vanished`;

/** Why the changes since a position cannot all be there, in one sentence; undefined: they are. */
export async function whyChangesAreLost(
  session: SqlSession,
  now: string,
  { snapshot, lastChange, forgotten: forgottenBefore }: LogPlace,
  relations: readonly string[],
): Promise<string | undefined> {
  const { number = null, xid = null } = lastChange ?? {};
  const values = [now, snapshot, [...relations], number, xid, JSON.stringify(forgottenBefore)];
  const { rows } = await session.query(LOST, values);
  const { back, forgotten, vanished } = rows[0] ?? {};
  if (isTrue(back)) return "The source went back to an earlier state: it was restored, or a standby took its place.";
  if (forgotten != null) {
    return `The change table has forgotten changes of ${forgotten} that were not read yet: its limit was reached.`;
  }
  return isTrue(vanished) ? "The change table lacks a change that was there before." : undefined;
}

/** Without a state nobody knows whether anything is missing; the run sees to that. Ordered as the index is: the planner would otherwise hope to meet the one row early, and read the whole table for none. */
const CHANGED = `
  SELECT p.n::text AS n
    FROM jsonb_to_recordset($1::jsonb) AS p (n integer, snapshot pg_snapshot, number bigint, xid xid8, forgotten jsonb, relations text[])
   CROSS JOIN LATERAL (SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_snapshot() END AS now) AS s
   WHERE NOT ${sees("s.now", "p.snapshot")} OR ${remembered("p.forgotten")} OR ${vanished("p.relations", "p.number", "p.xid")}
      OR coalesce((SELECT is_full FROM ${CHANGES_SCHEMA}.status), true)
      OR EXISTS (SELECT FROM unnest(p.relations) AS w (relation)
                  CROSS JOIN LATERAL (SELECT FROM ${CHANGES} AS c
                                       WHERE c.relation = w.relation AND ${since("p.snapshot", "c")}
                                       ORDER BY c.xid DESC LIMIT 1) AS found)
      OR EXISTS (SELECT FROM ${CHANGES_SCHEMA}.tables t WHERE t.relation = ANY (p.relations) AND NOT ${sees("p.snapshot", "t.forgotten")})`;

/** The places in the list of those that have changes behind them, or have lost some. */
export async function findChanged(
  session: SqlSession,
  positions: readonly { readonly position: LogPlace; readonly tables: readonly string[] }[],
): Promise<ReadonlySet<number>> {
  const asked = positions.map(({ position: { snapshot, lastChange, forgotten }, tables: relations }, n) => ({
    n,
    snapshot,
    ...lastChange,
    forgotten,
    relations,
  }));
  const { rows } = await session.query(CHANGED, [JSON.stringify(asked)]);
  return new Set(rows.map(({ n }) => Number(n)));
}
