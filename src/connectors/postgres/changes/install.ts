import type { SqlSession } from "../../../domain/sql-session.ts";
import type { ImageColumn } from "../../../sql-analysis/follow-plan.ts";
import { CHANGES_SCHEMA, inOrder, mergedTables, type RecordedTable, recordedName, recorderName } from "./recorder.ts";
import { readRecording } from "./recording.ts";
import { type RecordingProblem, recordingProblems } from "./recording-problems.ts";
import { changesScript, INSTALLING_LOCK } from "./script.ts";

/** Runs a script of `script.ts` in a session of the source's owner. */
export async function installChanges(session: SqlSession, script: string): Promise<void> {
  try {
    // Without values, so by the simple protocol: the script is many statements, with transactions of its own.
    await session.query(script);
  } catch (error) {
    await session.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** What is recorded of these tables already, as far as the columns still exist. */
const RECORDED = `
  SELECT t.schema, t.name,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('name', i.name, 'type', format_type(a.atttypid, a.atttypmod))), '[]')
            FROM jsonb_to_recordset(t.columns -> 'image') AS i (name text) JOIN pg_attribute a ON a.attname = i.name AND a.attrelid = c.oid
           WHERE NOT a.attisdropped)::text AS image,
         (SELECT coalesce(jsonb_agg(a.attname), '[]') FROM jsonb_array_elements_text(t.columns -> 'read') AS r (name)
            JOIN pg_attribute a ON a.attname = r.name AND a.attrelid = c.oid WHERE NOT a.attisdropped)::text AS read
    FROM ${CHANGES_SCHEMA}.tables t
    JOIN pg_namespace n ON n.nspname = t.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.name
   WHERE t.relation = ANY ($1::text[])`;

/** What others need, who are not asked, is among it. */
export async function recordedSoFar(
  session: SqlSession,
  tables: readonly RecordedTable[],
): Promise<readonly RecordedTable[]> {
  const { rows: found } = await session.query(`SELECT to_regclass('${CHANGES_SCHEMA}.tables') IS NOT NULL AS is_there`);
  const isThere = found[0]?.["is_there"] === true || found[0]?.["is_there"] === "t";
  const { rows } = isThere ? await session.query(RECORDED, [tables.map(recordedName)]) : { rows: [] };
  return rows.map(
    (row): RecordedTable => ({
      schema: String(row["schema"]),
      name: String(row["name"]),
      imageColumns: JSON.parse(String(row["image"])) as ImageColumn[],
      readColumns: JSON.parse(String(row["read"])) as string[],
    }),
  );
}

/**
 * Has these tables recorded in a source that Vitrina may change itself: what others need of them stays. In a session of the
 * source's owner, outside any transaction.
 */
export async function recordChanges(
  session: SqlSession,
  tables: readonly RecordedTable[],
  reader: string,
): Promise<void> {
  await session.query("SELECT pg_catalog.pg_advisory_lock($1)", [INSTALLING_LOCK]);
  try {
    const before = await recordedSoFar(session, tables);
    await installChanges(session, changesScript({ tables: mergedTables([...before, ...tables]), reader }));
  } finally {
    await session.query("SELECT pg_catalog.pg_advisory_unlock($1)", [INSTALLING_LOCK]);
  }
}

interface SurplusRecording {
  readonly relation: string;
  readonly columns: readonly string[] | "all";
}

/** How the recording of a source differs from what its pipelines need. */
export interface ChangesDiff {
  readonly isInstalled: boolean;
  /** What the script would add or put right. */
  readonly problems: readonly RecordingProblem[];
  /** What it would put right, too, although every change is recorded. */
  readonly hindrances: readonly { readonly relation: string; readonly message: string }[];
  /** Recorded, and needed by nobody who was asked. */
  readonly surplus: readonly SurplusRecording[];
  /** What a person should know. */
  readonly remarks: readonly string[];
}

export async function changesDiff(session: SqlSession, tables: readonly RecordedTable[]): Promise<ChangesDiff> {
  const { rows } = await session.query(
    `SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE n.nspname = '${CHANGES_SCHEMA}' AND c.relname IN ('changes', 'status', 'tables'))::text AS installed,
            (SELECT string_agg(p.pubname, ', ' ORDER BY p.pubname) FROM pg_publication p WHERE p.puballtables) AS publications`,
  );
  const publications = rows[0]?.["publications"];
  const remarks =
    publications == null
      ? []
      : [
          `The publication ${publications} is FOR ALL TABLES, so it carries the change table along. Publish the tables or schemas that are meant instead.`,
        ];
  if (rows[0]?.["installed"] !== "3") {
    const problems = tables.map((table): RecordingProblem => {
      const relation = recordedName(table);
      return { relation, problem: "missing", message: `Changes of ${relation} are not recorded.` };
    });
    return { isInstalled: false, problems, hindrances: [], surplus: [], remarks };
  }
  const facts = await readRecording(session, tables, []);
  const surplus = facts.installed.flatMap(({ relation, columns }): SurplusRecording[] => {
    const wanted = tables.find((table) => recordedName(table) === relation);
    if (wanted === undefined) return [{ relation, columns: "all" }];
    const { readColumns } = inOrder(wanted);
    const others = columns.read.filter((column) => !readColumns.includes(column));
    return others.length === 0 ? [] : [{ relation, columns: others }];
  });
  const hindrances = await readHindrances(session, tables);
  return { isInstalled: true, problems: recordingProblems(facts, tables), hindrances, surplus, remarks };
}

/** Owners since the script was run. */
const HINDERED_OWNERS = `
  WITH RECURSIVE tree (relation, recorder, oid) AS (
    SELECT w.relation, p.oid, c.oid
      FROM jsonb_to_recordset($1::jsonb) AS w (relation text, schema name, name name, recorder name)
      JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
      JOIN pg_namespace own ON own.nspname = '${CHANGES_SCHEMA}'
      JOIN pg_proc p ON p.pronamespace = own.oid AND p.proname = w.recorder
    UNION
    SELECT t.relation, t.recorder, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
  )
  SELECT DISTINCT t.relation, r.rolname AS owner
    FROM tree t JOIN pg_class c ON c.oid = t.oid AND c.relkind = 'p' JOIN pg_roles r ON r.oid = c.relowner
   WHERE NOT has_function_privilege(r.oid, t.recorder, 'EXECUTE')
   ORDER BY 1, 2`;

async function readHindrances(
  session: SqlSession,
  tables: readonly RecordedTable[],
): Promise<ChangesDiff["hindrances"]> {
  const wanted = tables.map(({ schema, name }) => ({
    relation: recordedName({ schema, name }),
    schema,
    name,
    recorder: recorderName({ schema, name }),
  }));
  const { rows } = await session.query(HINDERED_OWNERS, [JSON.stringify(wanted)]);
  return rows.map((row) => {
    const [relation, owner] = [String(row["relation"]), String(row["owner"])];
    return { relation, message: `The owner ${owner} cannot add partitions to ${relation}: run the script again.` };
  });
}
