import { VitrinaError } from "../../../domain/error-catalogue.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { FactColumn, QueryFacts, RelationFacts } from "../../../sql-analysis/query-facts.ts";
import { FUNCTIONS_CALLED, RELATIONS_REACHED } from "../../../sql-guard/audit-queries.ts";
import { type Statement, statementsOf } from "../../../sql-guard/tree.ts";
import { findSurroundings } from "./surroundings.ts";
import { timeTexts } from "./time-texts.ts";

/** Asks the source what it makes of a query that is to be followed. The query was examined before. */

const VIEW = "vitrina_follow";
/** Nothing here takes long, but somebody who alters a table may have locked it. */
const FACTS_TIMEOUT_MS = 30_000;

/**
 * In transactions of its own, which leave nothing behind. PostgreSQL itself resolves every name and star of the query:
 * it is asked for the definition of a temporary view.
 */
export async function readQueryFacts(session: SqlSession, query: string): Promise<QueryFacts> {
  await requirePrimary(session);
  const text = await statementText(query);
  await session.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
  try {
    // Names are printed with their schemas when these are not searched.
    await session.query(
      `SELECT set_config('search_path', 'pg_catalog, pg_temp', true), set_config('standard_conforming_strings', 'on', true),
              set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`,
      [String(FACTS_TIMEOUT_MS)],
    );
    await session.query(`CREATE TEMPORARY VIEW ${VIEW} AS\n${text}\n`);
    const { rows: made } = await session.query("SELECT to_regclass($1)::oid::text AS view", [`pg_temp.${VIEW}`]);
    const view = made[0]?.["view"] as string | undefined;
    const { rows: calls } = await session.query(FUNCTIONS_CALLED, [[view]]);
    const timesFromTexts = await names(session, TIMES_FROM_TEXTS, [[view]]);
    // Before the definition, which names labels and fields: if one is altered in between, the first round notices.
    const surroundings = await findSurroundings(session, view, calls, timesFromTexts.length > 0);
    const { rows } = await session.query(DEFINITION, [view]);
    const { definition, columns } = rows[0] as Record<string, string>;
    return {
      query,
      definition: definition ?? "",
      columns: JSON.parse(columns ?? "[]") as FactColumn[],
      relations: await relationsOf(session, view),
      aggregates: await names(session, "SELECT DISTINCT proname::text AS name FROM pg_proc WHERE prokind = 'a'"),
      setReturning: await names(session, "SELECT DISTINCT proname::text AS name FROM pg_proc WHERE proretset"),
      volatile: volatileFunctions(calls),
      timeTexts: await timeTexts(text, definition ?? "", timesFromTexts.length > 0),
      timesFromTexts,
      losesByConversion: (await names(session, IMPLICIT_CASTS, [[view]])).some(
        (type) => !KEEPS_WHAT_IS_EQUAL.test(type),
      ),
      typesOfOwnEquality: await names(session, TYPES_OF_OWN_EQUALITY),
      surroundings,
    };
  } finally {
    // Fails only on a broken connection, which is then reported anyway.
    await session.query("ROLLBACK").catch(() => undefined);
  }
}

async function requirePrimary(session: SqlSession): Promise<void> {
  const { rows } = await session.query("SELECT pg_is_in_recovery()::text AS standby");
  if (rows[0]?.["standby"] !== "true") return;
  throw new VitrinaError(
    "NOT_SUPPORTED",
    "The source is a standby, where a query cannot be analysed for following: no view can be created there. Follow its primary.",
  );
}

/** Without its semicolon and what follows. */
async function statementText(query: string): Promise<string> {
  const statements = await statementsOf(query);
  const [statement, second] = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
  if (statement === undefined || second !== undefined) {
    throw new VitrinaError("INTERNAL", "A query was to be followed before it was examined.");
  }
  return Buffer.from(query).subarray(statement.start, statement.end).toString();
}

/**
 * Whether equal values of a column are the same bytes: as its operator class says, and its collation. Of a bpchar without
 * length it says so wrongly ('a' and 'a ' are equal); so it did of intervals (1 day and 24 hours), which older clusters keep.
 */
const IS_EQUAL_IMAGE = `EXISTS (
    SELECT FROM pg_type t
      JOIN pg_opclass o ON o.opcdefault AND o.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')
       AND o.opcintype = CASE WHEN t.typtype = 'e' OR b.typtype = 'e' THEN 'anyenum'::regtype
                              WHEN coalesce(b.oid, t.oid) = 'varchar'::regtype THEN 'text'::regtype
                              ELSE coalesce(b.oid, t.oid) END
      JOIN pg_amproc p ON p.amprocfamily = o.opcfamily AND p.amproclefttype = o.opcintype AND p.amprocnum = 4
     WHERE t.oid = a.atttypid AND p.amproc::text IN ('btequalimage', 'btvarstrequalimage')
       AND (o.opcintype <> 'bpchar'::regtype OR greatest(a.atttypmod, own.typtypmod) > 0) AND o.opcintype <> 'interval'::regtype
       AND (a.attcollation = 0 OR (SELECT collisdeterministic FROM pg_collation WHERE oid = a.attcollation)))`;

/** Domains lead to what they are made of, arrays to their elements. */
const isMadeOf = (type: string, what: string): string => `EXISTS (
      WITH RECURSIVE made_of (oid) AS (
        SELECT ${type}
        UNION SELECT x.oid FROM made_of JOIN pg_type t ON t.oid = made_of.oid
               CROSS JOIN LATERAL (VALUES (t.typbasetype), (t.typelem)) AS x (oid) WHERE x.oid <> 0)
      SELECT FROM made_of JOIN pg_type t ON t.oid = made_of.oid WHERE ${what})`;

const IS_COMPARED_BY_ITSELF = "t.typtype = 'b' AND t.typelem = 0 AND t.typnamespace <> 'pg_catalog'::regnamespace";
const isLoose = (collation: string): string =>
  `EXISTS (SELECT FROM pg_collation l WHERE l.oid = ${collation} AND NOT l.collisdeterministic)`;

const OWN_EQUALITY = `CASE WHEN ${isLoose("a.attcollation")} THEN 'collation'
                         WHEN ${isMadeOf("a.atttypid", IS_COMPARED_BY_ITSELF)} THEN 'type' END`;

/** Without arrays: these are casts to their elements. A domain may have a collation of its own. */
const TYPES_OF_OWN_EQUALITY = `
  SELECT format('%s.%s', n.nspname, own.typname) AS name
    FROM pg_type own JOIN pg_namespace n ON n.oid = own.typnamespace
   WHERE own.typnamespace <> 'pg_catalog'::regnamespace AND own.typtype IN ('b', 'd') AND own.typelem = 0
     AND ${isMadeOf("own.oid", `(${IS_COMPARED_BY_ITSELF}) OR ${isLoose("t.typcollation")}`)}`;

const COLUMNS_OF = (relation: string): string => `(
    SELECT coalesce(json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
             'isEqualImage', ${IS_EQUAL_IMAGE}, 'isVirtual', a.attgenerated = 'v',
             'hasOwnCollation', a.attcollation NOT IN (0, 'pg_catalog."default"'::regcollation),
             'ownEquality', ${OWN_EQUALITY}) ORDER BY a.attnum), '[]')::text
      FROM pg_attribute a
      JOIN pg_type own ON own.oid = a.atttypid LEFT JOIN pg_type b ON own.typtype = 'd' AND b.oid = own.typbasetype
     WHERE a.attrelid = ${relation} AND a.attnum > 0 AND NOT a.attisdropped)`;

const DEFINITION = `
  SELECT pg_get_viewdef(c.oid, false) AS definition, ${COLUMNS_OF("c.oid")} AS columns
    FROM pg_class c WHERE c.oid = $1::oid`;

/** A table with a foreign table among its partitions or children is one, too. */
const RELATIONS = `
  WITH RECURSIVE reached AS (SELECT DISTINCT schema, name FROM (${RELATIONS_REACHED}) AS r)
  , family (top, relid) AS (
    SELECT c.oid, c.oid FROM reached JOIN pg_namespace n ON n.nspname = reached.schema
      JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = reached.name
    UNION
    SELECT family.top, i.inhrelid FROM family JOIN pg_inherits i ON i.inhparent = family.relid
  )
  SELECT n.nspname::text AS schema, c.relname::text AS name,
         CASE WHEN EXISTS (SELECT FROM family JOIN pg_class f ON f.oid = family.relid
                            WHERE family.top = c.oid AND f.relkind = 'f') THEN 'f' ELSE c.relkind::text END AS kind,
         ${COLUMNS_OF("c.oid")} AS columns,
         CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid, false) END AS definition,
         c.relrowsecurity::text AS row_security,
         EXISTS (SELECT FROM family JOIN pg_class f ON f.oid = family.relid
                  WHERE family.top = c.oid AND f.relpersistence = 'u')::text AS unlogged
    FROM (SELECT DISTINCT top FROM family) AS tops JOIN pg_class c ON c.oid = tops.top
    JOIN pg_namespace n ON n.oid = c.relnamespace
   ORDER BY 1, 2`;

async function relationsOf(session: SqlSession, view: string | undefined): Promise<readonly RelationFacts[]> {
  const { rows } = await session.query(RELATIONS, [[view]]);
  return (rows as Record<string, string | null>[]).map((row) => ({
    schema: row["schema"] ?? "",
    name: row["name"] ?? "",
    kind: row["kind"] as RelationFacts["kind"],
    columns: JSON.parse(row["columns"] ?? "[]") as FactColumn[],
    definition: row["definition"] ?? null,
    hasRowSecurity: row["row_security"] === "true",
    isUnlogged: row["unlogged"] === "true",
  }));
}

/** The query and its views. */
const REACHED = `
  WITH RECURSIVE reached (relid) AS (
    SELECT unnest($1::oid[])
    UNION
    SELECT found[1]::oid FROM reached JOIN pg_rewrite r ON r.ev_class = reached.relid AND r.ev_type = '1'
     CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':relid (\\d+)', 'g') AS found
  )`;

/** Types that PostgreSQL converts values to where nobody has written a cast: by a function, or as they are. */
const IMPLICIT_CASTS = `${REACHED}
  SELECT DISTINCT format_type(coalesce(found[1], found[2])::oid, NULL) AS name
    FROM reached JOIN pg_rewrite r ON r.ev_class = reached.relid AND r.ev_type = '1'
   CROSS JOIN LATERAL regexp_matches(r.ev_action::text,
     ':funcresulttype (\\d+) :funcretset \\w+ :funcvariadic \\w+ :funcformat 2 |'
     ':resulttype (\\d+) (?::resulttypmod -?\\d+ )?:resultcollid \\d+ :(?:relabel|coerce)format 2 ', 'g') AS found`;

/** Converted to these, values are equal to others exactly if they were before. */
const KEEPS_WHAT_IS_EQUAL =
  /^(smallint|integer|bigint|numeric|text|character varying|timestamp with(out)? time zone)(\[\])?$/;

/**
 * Types of times that the query reads from texts when it runs, in itself or in its views: a text may say 'today'. Such a
 * conversion, and no other, has its type followed by its collation in the stored tree.
 */
const TIMES_FROM_TEXTS = `${REACHED}
  SELECT DISTINCT format_type(t.oid, NULL) AS name
    FROM reached JOIN pg_class c ON c.oid = reached.relid AND c.relkind = 'v'
    JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'
   CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':resulttype (\\d+) :resultcollid', 'g') AS found
    JOIN pg_type t ON t.oid = found[1]::oid
    LEFT JOIN pg_range g ON t.oid IN (g.rngtypid, g.rngmultitypid)
    LEFT JOIN pg_type part ON part.oid = coalesce(g.rngsubtype, nullif(t.typelem, 0))
   WHERE 'D' IN (t.typcategory, part.typcategory)`;

async function names(session: SqlSession, query: string, values?: unknown[]): Promise<readonly string[]> {
  const { rows } = await session.query(query, values);
  return rows.map(({ name }) => String(name));
}

function volatileFunctions(calls: readonly Record<string, unknown>[]): readonly string[] {
  const volatile = calls.filter(
    (row) => row["is_policy"] !== "true" && (row["volatility"] === "v" || dependsOnDay(row)),
  );
  return [...new Set(volatile.map(({ name }) => String(name)))];
}

/** A time of day without a date is one of summer time, or not, by the day on which it is asked for. */
function dependsOnDay({ name, types }: Record<string, unknown>): boolean {
  return (
    name === "timezone" && String(types).split(",").includes("timetz") && String(types).split(",").includes("text")
  );
}
