import type { SqlSession } from "../../../domain/sql-session.ts";
import type { ImageColumn } from "../../../sql-analysis/follow-plan.ts";
import { FIRST_OWN_OID } from "../../../sql-guard/audit-queries.ts";
import {
  CHANGES_SCHEMA,
  type RecordedTable,
  recordedName,
  recordedNameIn,
  rowTriggerName,
  truncateTriggerName,
} from "./recorder.ts";

/** What the source's catalogue says about tables and about the recording of their changes. */

/** A table, one of its partitions, or a table that inherits from it. */
export interface TablePart {
  /** The followed table, as it is recorded. */
  readonly relation: string;
  readonly oid: string;
  /** `schema.table` of the part itself. */
  readonly name: string;
  readonly isRoot: boolean;
  readonly kind: "r" | "p" | "f" | "v" | "m";
  readonly isUnlogged: boolean;
  readonly storage: string;
  /** With the `xmin` of what makes it a part: one that was taken out for a while and put back has another one. */
  readonly parents: string;
  /** Of its columns that are computed when they are read, how: null where there are none. */
  readonly computed: string | null;
  readonly rowTrigger: TriggerFacts | null;
  readonly truncateTrigger: TriggerFacts | null;
}

interface TriggerFacts {
  readonly oid: string;
  /** `A`: it always fires. */
  readonly enabled: string;
  /** Of its row in the catalogue: each change of the trigger gives it another one. */
  readonly xmin: string;
  /** False: not a plain row trigger, or truncate trigger, of this schema. */
  readonly isOurs: boolean;
}

export interface ColumnFacts {
  readonly relation: string;
  readonly name: string;
  readonly number: number;
  readonly type: string;
  /** What a domain is based on: old values need not fulfil the domain's rules any more. */
  readonly baseType: string;
  readonly collation: string;
  /** Quoted, with its schema; null where it is the one that values of the base type have anyway. */
  readonly ownCollation: string | null;
  readonly isVirtual: boolean;
  /** The labels of enums and the fields of composite types that it is made of: altering them changes rows that nobody wrote. */
  readonly makeup: string | null;
}

/** A recorded table, as the script has left it. */
export interface InstalledTable {
  readonly relation: string;
  readonly columns: { readonly image: readonly ImageColumn[]; readonly read: readonly string[] };
  /** Columns that its function reads, and that the table no longer has: it then fails, and knows nothing of any change. */
  readonly gone: readonly string[];
  /** The image columns in the types that they have now. */
  readonly presentImage: readonly ImageColumn[];
  /** The text of its function; null: there is none. */
  readonly body: string | null;
  readonly forgotten: string | null;
}

interface InstalledChanges {
  readonly oid: string;
  readonly version: number;
  readonly mark: string;
  readonly isFull: boolean;
}

export interface ShapeFacts {
  readonly relation: string;
  readonly shape: string;
}

export interface ViewFacts {
  readonly name: string;
  readonly rule: string;
}

/** Here and below, OFFSET 0 makes PostgreSQL look things up one by one: it expects many, and would read whole catalogues. */
const PARTS = `
  WITH RECURSIVE wanted AS (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS w (relation text, schema name, name name, "rowTrigger" name, "truncateTrigger" name)
  ), tree (relation, oid, parent, root) AS (
    SELECT w.relation, c.oid, NULL::text, true
      FROM wanted w JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
    UNION
    SELECT t.relation, i.inhrelid, concat_ws(' ', i.inhparent, i.xmin, CASE WHEN i.inhdetachpending THEN 'detaching' END), false
      FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
  ), part AS (
    SELECT relation, oid, bool_or(root) AS root, string_agg(parent, ',' ORDER BY parent) AS parents FROM tree GROUP BY relation, oid
  )
  SELECT p.relation, p.oid::text, ${recordedNameIn("n", "c")} AS name, p.root AS "isRoot", c.relkind AS kind,
         c.relpersistence <> 'p' AS "isUnlogged", c.relfilenode::text AS storage, coalesce(p.parents, '') AS parents,
         (SELECT md5(string_agg(concat_ws(' ', d.adnum, d.adbin), E'\\n' ORDER BY d.adnum))
            FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
           WHERE d.adrelid = p.oid AND a.attgenerated = 'v') AS computed,
         CASE WHEN r.oid IS NOT NULL THEN jsonb_build_object('oid', r.oid::text, 'enabled', r.tgenabled, 'xmin', r.xmin::text,
           'isOurs', r.tgtype = 29 AND r.tgqual IS NULL AND r.tgattr = ''::int2vector AND r.tgnargs = 0 AND rf.pronamespace = own.oid
                     AND rf.prosecdef) END AS "rowTrigger",
         CASE WHEN t.oid IS NOT NULL THEN jsonb_build_object('oid', t.oid::text, 'enabled', t.tgenabled, 'xmin', t.xmin::text,
           'isOurs', t.tgtype = 32 AND t.tgqual IS NULL AND tf.pronamespace = own.oid AND tf.prosecdef) END AS "truncateTrigger"
    FROM part p
    JOIN wanted w USING (relation)
    CROSS JOIN LATERAL (SELECT * FROM pg_class WHERE oid = p.oid OFFSET 0) AS c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_namespace own ON own.nspname = '${CHANGES_SCHEMA}'
    LEFT JOIN (pg_trigger r JOIN pg_proc rf ON rf.oid = r.tgfoid) ON r.tgrelid = p.oid AND r.tgname = w."rowTrigger"
    LEFT JOIN (pg_trigger t JOIN pg_proc tf ON tf.oid = t.tgfoid) ON t.tgrelid = p.oid AND t.tgname = w."truncateTrigger"
   ORDER BY p.relation, p.oid`;

/** Of domains what they are based on, of arrays their elements, of ranges their bounds, of composite types their fields. */
export const madeOf = (type: string): string => `
    SELECT x.oid FROM pg_type t
     CROSS JOIN LATERAL (
       SELECT t.typbasetype UNION ALL SELECT t.typelem WHERE t.typcategory = 'A'
       UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
       UNION ALL SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
     ) AS x (oid)
     WHERE t.oid = ${type} AND x.oid <> 0`;

/** Labels of an enum, and fields of a composite type: altering them changes what is read, and writes no row. */
export const makeupOf = (type: string): string => `
    SELECT concat_ws(' ', e.enumtypid, e.enumsortorder, e.enumlabel) FROM pg_enum e WHERE e.enumtypid = ${type}
    UNION ALL
    SELECT concat_ws(' ', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod)
      FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped WHERE t.oid = ${type}`;

/** Types that came with PostgreSQL itself are not looked into: nobody alters them. */
const COLUMNS = `
  WITH RECURSIVE wanted AS (
    SELECT w.relation, a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attgenerated
      FROM jsonb_to_recordset($1::jsonb) AS w (relation text, schema name, name name, columns name[])
      JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = ANY (w.columns) AND a.attnum > 0 AND NOT a.attisdropped
  ), base (attrelid, attnum, oid, typmod) AS (
    SELECT attrelid, attnum, atttypid, atttypmod FROM wanted
    UNION ALL
    SELECT b.attrelid, b.attnum, t.typbasetype, t.typtypmod FROM base b JOIN pg_type t ON t.oid = b.oid WHERE t.typtype = 'd'
  )
  SELECT DISTINCT w.relation, w.attname AS name, w.attnum AS number, format_type(w.atttypid, w.atttypmod) AS type,
         format_type(b.oid, b.typmod) AS "baseType", w.attcollation::text AS collation,
         (SELECT format('%I.%I', n.nspname, l.collname) FROM pg_collation l JOIN pg_namespace n ON n.oid = l.collnamespace
           WHERE l.oid = w.attcollation AND l.oid <> t.typcollation) AS "ownCollation", w.attgenerated = 'v' AS "isVirtual",
         CASE WHEN w.atttypid >= ${FIRST_OWN_OID} THEN (
           WITH RECURSIVE made (oid) AS (SELECT w.atttypid UNION SELECT x.oid FROM made CROSS JOIN LATERAL (${madeOf("made.oid")}) AS x (oid))
           SELECT md5(string_agg(fact, E'\\n' ORDER BY fact)) FROM made CROSS JOIN LATERAL (${makeupOf("made.oid")}) AS f (fact)) END AS makeup
    FROM wanted w JOIN base b USING (attrelid, attnum) JOIN pg_type t ON t.oid = b.oid AND t.typtype <> 'd'
   ORDER BY w.relation, w.attnum`;

/**
 * Of all columns, for the watcher, who does not know which of them a query reads; with what their types are made of, and
 * whether row-level security decides what is read.
 */
const SHAPES = `
  WITH RECURSIVE col AS (
    SELECT w.relation, c.relrowsecurity, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation
      FROM jsonb_to_recordset($1::jsonb) AS w (relation text, schema name, name name)
      JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  ), type (relation, oid) AS (
    SELECT relation, atttypid FROM col
    UNION
    SELECT b.relation, x.oid FROM type b CROSS JOIN LATERAL (${madeOf("b.oid")}) AS x (oid) WHERE b.oid >= ${FIRST_OWN_OID}
  )
  SELECT s.relation, md5(concat(s.relrowsecurity, s.columns, (
           SELECT string_agg(f.fact, E'\\n' ORDER BY f.fact)
             FROM type y CROSS JOIN LATERAL (${makeupOf("y.oid")}) AS f (fact) WHERE y.relation = s.relation))) AS shape
    FROM (SELECT relation, relrowsecurity, string_agg(concat_ws(' ', attnum, attname, atttypid, atttypmod, attcollation), E'\\n' ORDER BY attnum) AS columns
            FROM col GROUP BY relation, relrowsecurity) AS s`;

const INSTALLED = `
  SELECT t.relation, t.columns, p.prosrc AS body, t.forgotten::text AS forgotten,
         (SELECT coalesce(jsonb_agg(r.name ORDER BY r.name), '[]') FROM jsonb_array_elements_text(t.columns -> 'read') AS r (name)
           WHERE c.oid IS NOT NULL AND NOT EXISTS (
             SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = r.name AND NOT a.attisdropped)) AS gone,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod))), '[]')
            FROM jsonb_to_recordset(t.columns -> 'image') AS i (name text)
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = i.name AND NOT a.attisdropped) AS "presentImage"
    FROM ${CHANGES_SCHEMA}.tables t
    LEFT JOIN LATERAL (SELECT c.oid FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
                        WHERE s.nspname = t.schema AND c.relname = t.name OFFSET 0) AS c ON true
    LEFT JOIN LATERAL (SELECT p.prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                        WHERE n.nspname = '${CHANGES_SCHEMA}' AND p.proname = t.recorder AND p.pronargs = 0 OFFSET 0) AS p ON true`;

const STATUS = `
  SELECT s.version, s.mark, s.is_full AS "isFull",
         (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = '${CHANGES_SCHEMA}' AND c.relname = 'changes')::text AS oid
    FROM ${CHANGES_SCHEMA}.status s`;

/** The relations of a list, and those behind the views among them, by the snapshot and not by the catalogue of the moment. */
export const reachedFrom = (list: "$1" | "$2"): string => `WITH RECURSIVE reached (relid) AS (
    SELECT c.oid FROM jsonb_to_recordset(${list}::jsonb) AS w (schema name, name name)
      JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
    UNION
    SELECT found[1]::oid
      FROM reached JOIN pg_rewrite r ON r.ev_class = reached.relid AND r.ev_type = '1'
     CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':relid (\\d+)', 'g') AS found
     WHERE found[1] <> '0'
  )`;

const VIEWS = `
  ${reachedFrom("$2")}
  SELECT ${recordedNameIn("n", "c")} AS name,
         md5(concat(r.ev_action, (SELECT string_agg(a.attname, E'\\n' ORDER BY a.attnum) FROM pg_attribute a
                                   WHERE a.attrelid = c.oid AND a.attnum > 0))) AS rule
    FROM reached JOIN pg_class c ON c.oid = reached.relid AND c.relkind = 'v'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'
   ORDER BY 1`;

const listOf = (query: string): string => `(SELECT coalesce(jsonb_agg(found), '[]') FROM (${query}) AS found)::text`;

/** Relations that a query names: they may be views. */
export interface NamedRelation {
  readonly schema: string;
  readonly name: string;
}

interface TablesFacts {
  readonly parts: readonly TablePart[];
  readonly views: readonly ViewFacts[];
  readonly shapes: readonly ShapeFacts[];
}

/** What does not depend on how changes are recorded. */
export interface TableFacts extends TablesFacts {
  readonly columns: readonly ColumnFacts[];
}

export interface RecordingFacts extends TableFacts {
  readonly installed: readonly InstalledTable[];
  readonly changes: InstalledChanges;
}

/** By one question. The change table must be there. */
export async function readRecording(
  session: SqlSession,
  tables: readonly RecordedTable[],
  named: readonly NamedRelation[],
): Promise<RecordingFacts> {
  const more = { installed: INSTALLED, changes: STATUS };
  const lists = await readTableFacts<{ installed: InstalledTable; changes: InstalledChanges }>(
    session,
    tables,
    named,
    more,
  );
  const [changes] = lists.changes;
  return { ...lists, changes: changes ?? { oid: "", version: 0, mark: "", isFull: true } };
}

/** By one question, together with what a log wants to know; `$1` and `$2` are the tables and the named relations. */
export async function readTableFacts<More extends Record<string, unknown>>(
  session: SqlSession,
  tables: readonly RecordedTable[],
  named: readonly NamedRelation[],
  more: Readonly<Record<keyof More, string>>,
  values: readonly string[] = [],
): Promise<TableFacts & { readonly [K in keyof More]: readonly More[K][] }> {
  const questions = Object.entries<string>({ parts: PARTS, views: VIEWS, shapes: SHAPES, columns: COLUMNS, ...more });
  const { rows } = await session.query(
    `SELECT ${questions.map(([name, question]) => `${listOf(question)} AS ${name}`).join(", ")}`,
    [wantedTables(tables), JSON.stringify(named), ...values],
  );
  return parsed(rows[0]);
}

/** The part of it that does not depend on what a query reads, for the watcher; works without a change table. */
export async function readTables(
  session: SqlSession,
  tables: readonly NamedRelation[],
  named: readonly NamedRelation[],
): Promise<TablesFacts> {
  const wanted = tables.map((table) => ({ ...table, imageColumns: [], readColumns: [] }));
  const { rows } = await session.query(
    `SELECT ${listOf(PARTS)} AS parts, ${listOf(VIEWS)} AS views, ${listOf(SHAPES)} AS shapes`,
    [wantedTables(wanted), JSON.stringify(named)],
  );
  return parsed<TablesFacts>(rows[0]);
}

function wantedTables(tables: readonly RecordedTable[]): string {
  const wanted = tables.map((table) => ({
    relation: recordedName(table),
    schema: table.schema,
    name: table.name,
    rowTrigger: rowTriggerName(table),
    truncateTrigger: truncateTriggerName(table),
    columns: [...new Set([...table.readColumns, ...table.imageColumns.map(({ name }) => name)])],
  }));
  return JSON.stringify(wanted);
}

function parsed<T>(row: Record<string, unknown> | undefined): T {
  return Object.fromEntries(Object.entries(row ?? {}).map(([name, text]) => [name, JSON.parse(String(text))])) as T;
}
