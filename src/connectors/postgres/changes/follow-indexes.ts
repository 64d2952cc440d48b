import { relationName } from "../../../domain/relation-name.ts";
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
    found.push(...missing.map(({ statement, scans }) => ({ table: relationName(table), scans, statement })));
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

/** A relation that a plan reads as a whole. */
interface ScannedTable {
  readonly schema: string;
  readonly name: string;
  /** Its own, and those of the parts that are read together with it: conditions use the name of one of them. */
  readonly aliases: readonly string[];
  /** Those that its rows pass on their way up the plan, in this order. */
  readonly conditions: readonly string[];
}

const CONDITIONS = ["Filter", "Hash Cond", "Merge Cond", "Join Filter"] as const;

interface MappingPlanNode extends Partial<Record<(typeof CONDITIONS)[number], string>> {
  readonly "Node Type": string;
  readonly Schema?: string;
  readonly "Relation Name"?: string;
  readonly Alias?: string;
  readonly Plans?: readonly MappingPlanNode[];
}

async function scannedTables(client: Client, statement: string): Promise<readonly ScannedTable[]> {
  const { rows } = await extended(client, `EXPLAIN (FORMAT JSON, VERBOSE) ${statement}`);
  const [{ Plan: plan }] = JSON.parse(rows[0]?.[0] ?? "[]") as [{ Plan: MappingPlanNode }];
  return scansIn(plan, []);
}

function scansIn(node: MappingPlanNode, above: readonly string[]): readonly ScannedTable[] {
  const { "Node Type": type, Schema: schema, "Relation Name": name, Alias: alias, Plans: parts = [] } = node;
  const conditions = [...CONDITIONS.flatMap((kind) => node[kind] ?? []), ...above];
  const below = parts.flatMap((part) => scansIn(part, conditions));
  if (type === "Append") {
    const aliases = below.flatMap((scan) => scan.aliases);
    return below.map((scan) => ({ ...scan, aliases }));
  }
  if (type !== "Seq Scan" || schema === undefined || name === undefined) return below;
  return [...below, { schema, name, aliases: [alias ?? name], conditions }];
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
  for (const scan of scanned) {
    const root = await largeTable(client, scan.schema, scan.name);
    const followed = tables.find((one) => one.schema === root?.schema && one.name === root.name);
    if (root === undefined || followed === undefined) continue;
    const columns = followed.imageColumns.map((column) => column.name);
    for (const wanted of wantedIndexes(scan, root, columns)) {
      const written = wanted.map((column) => root.written[column] ?? quoteIdentifier(column));
      const statement = `CREATE INDEX ON ${root.label} (${written.join(", ")})`;
      found.set(statement, { scans: relationName(scan), statement });
    }
  }
  return [...found.values()];
}

/** Those columns together that the first condition compares: that is how the rows are found. The others only follow from there. */
function wantedIndexes(
  { aliases, conditions }: ScannedTable,
  { indexes, written }: LargeTable,
  columns: readonly string[],
): readonly (readonly string[])[] {
  const isIndexed = (some: readonly string[]): boolean =>
    indexes.some(
      (index) =>
        index.length >= some.length && index.slice(0, some.length).every((one) => one !== null && some.includes(one)),
    );
  const names = aliases.flatMap((alias) => [alias, quoteIdentifier(alias)]);
  for (const condition of conditions) {
    const compared = columns.filter((column) =>
      names.some((alias) => mentions(condition, `${alias}.${written[column] ?? quoteIdentifier(column)}`)),
    );
    if (compared.length > 0) return isIndexed(compared) ? [] : [compared];
  }
  return columns.map((column) => [column]).filter((one) => !isIndexed(one));
}

/** And not another name that begins or ends like this one. */
function mentions(condition: string, column: string): boolean {
  const around = condition.split(column);
  return around.some(
    (before, index) =>
      index + 1 < around.length &&
      !NAME_PART.test(before.slice(-1)) &&
      !NAME_PART.test((around[index + 1] ?? "").slice(0, 1)),
  );
}

const NAME_PART = /[\p{L}\p{N}_$"]/u;

interface LargeTable {
  readonly schema: string;
  readonly name: string;
  readonly label: string;
  /** The columns of each index, in its order; null is an expression. */
  readonly indexes: readonly (readonly (string | null)[])[];
  /** Each column with quotes where it needs them, as EXPLAIN shows it. */
  readonly written: Readonly<Record<string, string>>;
}

/** The table itself, or the partitioned one that it is a part of; undefined where it is small. */
async function largeTable(client: Client, schema: string, name: string): Promise<LargeTable | undefined> {
  const { rows } = await client.query<Record<"schema" | "name" | "label" | "indexes" | "written", string>>(
    `SELECT n.nspname::text AS schema, c.relname::text AS name, format('%I.%I', n.nspname, c.relname) AS label,
            (SELECT coalesce(json_agg((SELECT json_agg(a.attname ORDER BY k.n)
                                        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
                                        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                                       WHERE k.n <= i.indnkeyatts)), '[]')::text
               FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL) AS indexes,
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
  const { indexes, written, ...table } = row;
  return {
    ...table,
    indexes: JSON.parse(indexes) as LargeTable["indexes"],
    written: JSON.parse(written) as LargeTable["written"],
  };
}
