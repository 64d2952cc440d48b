import type { Client } from "../../../postgres/connection.ts";
import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import type { FollowedTable, FollowPlan, ImagesOf } from "../../../sql-analysis/follow-plan.ts";
import type { FollowIndex } from "../../inspector.ts";
import { extended } from "../read-session.ts";

/** A smaller table is read as a whole by any sensible plan. */
const LARGE_TABLE_ROWS = 10_000;

/**
 * Which indexes the statements of a plan lack: each is planned with a few changed rows, and must not read a large table
 * as a whole to find the keys.
 */
export async function followIndexes(client: Client, { tables }: FollowPlan): Promise<readonly FollowIndex[]> {
  const found: FollowIndex[] = [];
  for (const { change, ...table } of tables) {
    if (change.kind !== "keys") continue;
    const scanned = await scannedTables(client, change.statement(imagesFor(tables)));
    const missing = await missingIndexes(client, scanned, tables);
    found.push(
      ...missing.map(({ statement, scans }) => ({ table: `${table.schema}.${table.name}`, scans, statement })),
    );
  }
  return found;
}

/** The planner expects a hundred rows of such a function: as many as a round usually has, or more. */
function imagesFor(tables: readonly FollowedTable[]): ImagesOf {
  return ({ schema, name }) => {
    const columns = tables.find((one) => one.schema === schema && one.name === name)?.imageColumns ?? [];
    const definitions = columns.map((column) => `${quoteIdentifier(column.name)} ${column.type}`).join(", ");
    const rows = `(SELECT i.* FROM jsonb_to_recordset('[]'::jsonb) AS i (${definitions}))`;
    return { changed: rows, old: rows };
  };
}

/** A relation that a plan reads as a whole, and what is compared with its columns there. */
interface ScannedTable {
  readonly schema: string;
  readonly name: string;
  readonly conditions: string;
}

interface MappingPlanNode {
  readonly "Node Type": string;
  readonly Schema?: string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly MappingPlanNode[];
}

const CONDITIONS = /"(?:Hash Cond|Merge Cond|Join Filter|Filter|Recheck Cond)": ?("(?:[^"\\]|\\.)*")/g;

async function scannedTables(client: Client, statement: string): Promise<readonly ScannedTable[]> {
  const { rows } = await extended(client, `EXPLAIN (FORMAT JSON, VERBOSE) ${statement}`);
  const text = rows[0]?.[0] ?? "[]";
  const conditions = [...text.matchAll(CONDITIONS)]
    .map(([, condition = '""']) => String(JSON.parse(condition)))
    .join(" ");
  const [{ Plan: plan }] = JSON.parse(text) as [{ Plan: MappingPlanNode }];
  return scansIn(plan).map((scan) => ({ ...scan, conditions }));
}

function scansIn(node: MappingPlanNode): readonly Pick<ScannedTable, "schema" | "name">[] {
  const { "Node Type": type, Schema: schema, "Relation Name": name, Plans: parts = [] } = node;
  const own = type === "Seq Scan" && schema !== undefined && name !== undefined ? [{ schema, name }] : [];
  return [...own, ...parts.flatMap(scansIn)];
}

interface MissingIndex {
  readonly scans: string;
  readonly statement: string;
}

async function missingIndexes(
  client: Client,
  scanned: readonly ScannedTable[],
  tables: readonly FollowedTable[],
): Promise<readonly MissingIndex[]> {
  const found = new Map<string, MissingIndex>();
  for (const { schema, name, conditions } of scanned) {
    const root = await largeTable(client, schema, name);
    const followed = tables.find((one) => one.schema === root?.schema && one.name === root.name);
    if (root === undefined || followed === undefined) continue;
    const bare = followed.imageColumns.map((column) => column.name).filter((column) => !root.indexed.includes(column));
    const written = bare.map((column) => root.written[column] ?? quoteIdentifier(column));
    const joined = written.filter((column) => conditions.includes(`.${column}`));
    const scans = `${schema}.${name}`;
    for (const column of joined.length > 0 ? joined : written) {
      const statement = `CREATE INDEX ON ${root.label} (${column})`;
      found.set(statement, { scans, statement });
    }
  }
  return [...found.values()];
}

interface LargeTable {
  readonly schema: string;
  readonly name: string;
  readonly label: string;
  /** The columns that an index begins with. */
  readonly indexed: readonly string[];
  /** Each column with quotes where it needs them, as EXPLAIN shows it. */
  readonly written: Readonly<Record<string, string>>;
}

/** The table itself, or the partitioned one that it is a part of; undefined where it is small. */
async function largeTable(client: Client, schema: string, name: string): Promise<LargeTable | undefined> {
  const { rows } = await client.query<Record<"schema" | "name" | "label" | "indexed" | "written", string>>(
    `SELECT n.nspname::text AS schema, c.relname::text AS name, format('%I.%I', n.nspname, c.relname) AS label,
            (SELECT coalesce(json_agg(a.attname), '[]')::text
               FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
              WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL) AS indexed,
            (SELECT json_object_agg(a.attname, quote_ident(a.attname))::text
               FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS written
       FROM pg_class part JOIN pg_namespace pn ON pn.oid = part.relnamespace
       JOIN pg_class c ON c.oid = coalesce(pg_partition_root(part.oid), part.oid)
       JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE pn.nspname = $1 AND part.relname = $2 AND part.reltuples >= $3`,
    [schema, name, LARGE_TABLE_ROWS],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { indexed, written, ...table } = row;
  return { ...table, indexed: JSON.parse(indexed) as string[], written: JSON.parse(written) as Record<string, string> };
}
