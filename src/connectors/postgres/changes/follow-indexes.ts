import { relationName } from "../../../domain/relation-name.ts";
import type { Client } from "../../../postgres/connection.ts";
import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import type { FollowedTable, FollowPlan, ImagesOf } from "../../../sql-analysis/follow-plan.ts";
import type { FollowIndex } from "../../inspector.ts";
import { extended } from "../read-session.ts";

/** A smaller table is read as a whole by any sensible plan. */
const LARGE_TABLE_ROWS = 10_000;
/** Up to here it may well be right not to use an index that is there: nothing is said of it. */
const MOST_ROWS_BY_CHOICE = 100_000;

/**
 * Which large tables the statements of a plan read as a whole to find the keys, and the index that would help: each is
 * planned with a few changed rows.
 */
export async function followIndexes(client: Client, { tables }: FollowPlan): Promise<readonly FollowIndex[]> {
  const found: FollowIndex[] = [];
  for (const { change, ...table } of tables) {
    if (change.kind !== "keys") continue;
    const scanned = await scannedTables(client, change.statement(imagesFor(tables)));
    const missing = await missingIndexes(client, scanned, tables);
    found.push(...missing.map((help) => ({ table: relationName(table), ...help })));
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
  /** Those that its rows pass on their way up the plan, in this order, and then all others. */
  readonly conditions: readonly string[];
}

const CONDITIONS = ["Filter", "Hash Cond", "Merge Cond", "Join Filter", "Index Cond"] as const;

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
  return scansIn(plan, [], conditionsIn(plan));
}

function conditionsOf(node: MappingPlanNode): readonly string[] {
  return CONDITIONS.flatMap((kind) => node[kind] ?? []);
}

function conditionsIn(node: MappingPlanNode): readonly string[] {
  return [...conditionsOf(node), ...(node.Plans ?? []).flatMap(conditionsIn)];
}

function scansIn(node: MappingPlanNode, above: readonly string[], all: readonly string[]): readonly ScannedTable[] {
  const { "Node Type": type, Schema: schema, "Relation Name": name, Alias: alias, Plans: parts = [] } = node;
  const conditions = [...conditionsOf(node), ...above];
  const below = parts.flatMap((part) => scansIn(part, conditions, all));
  if (type === "Append") {
    const aliases = parts.flatMap(aliasesOf);
    return below.map((scan) => ({ ...scan, aliases: [...scan.aliases, ...aliases] }));
  }
  if (type !== "Seq Scan" || schema === undefined || name === undefined) return below;
  return [...below, { schema, name, aliases: [alias ?? name], conditions: [...conditions, ...all] }];
}

/** Of what an Append puts together: above it, columns have the name of any of them, also of the old rows. */
function aliasesOf({ "Node Type": type, Alias: alias, Plans: parts = [] }: MappingPlanNode): readonly string[] {
  if (alias !== undefined) return [alias];
  return type === "Append" || parts.length === 1 ? parts.flatMap(aliasesOf) : [];
}

/** An index that is missing, or why none would help. */
type Help = Pick<FollowIndex, "scans" | "statement" | "why">;

async function missingIndexes(
  client: Client,
  scanned: readonly ScannedTable[],
  tables: readonly FollowedTable[],
): Promise<readonly Help[]> {
  const found = new Map<string, Help>();
  for (const scan of scanned) {
    const root = await largeTable(client, scan.schema, scan.name);
    const followed = tables.find((one) => one.schema === root?.schema && one.name === root.name);
    if (root === undefined || followed === undefined) continue;
    const scans = relationName(scan);
    const columns = followed.imageColumns.map((column) => column.name);
    const wanted = wantedIndexes(scan, root, columns);
    if (wanted === undefined) found.set(scans, { scans, statement: null, why: NOT_BY_COLUMNS });
    else if (wanted.length === 0 && root.rows > MOST_ROWS_BY_CHOICE) {
      found.set(scans, { scans, statement: null, why: BY_CHOICE });
    }
    for (const index of wanted ?? []) {
      const written = index.map((column) => root.written[column] ?? quoteIdentifier(column));
      const statement = `CREATE INDEX ON ${root.label} (${written.join(", ")})`;
      found.set(statement, { scans, statement, why: null });
    }
  }
  return [...found.values()];
}

const NOT_BY_COLUMNS =
  "No index of its columns helps, because none of them is compared as it is: compare plain columns in the query if that is possible.";
const BY_CHOICE =
  "The indexes that lead to its rows are there, but PostgreSQL expects so many of them that it does not use these.";

/**
 * By the first condition that compares columns as they are: that is how the rows are found. The others only follow from
 * there. Undefined: there is none.
 */
function wantedIndexes(
  { aliases, conditions }: ScannedTable,
  { indexes, written, distinct }: LargeTable,
  columns: readonly string[],
): readonly (readonly string[])[] | undefined {
  const isIndexed = (some: readonly string[]): boolean =>
    indexes.some(
      (index) =>
        index.length >= some.length && index.slice(0, some.length).every((one) => one !== null && some.includes(one)),
    );
  const names = aliases.flatMap((alias) => [alias, quoteIdentifier(alias)]);
  const namesOf = (column: string): readonly string[] =>
    names.map((alias) => `${alias}.${written[column] ?? quoteIdentifier(column)}`);
  for (const condition of conditions) {
    const compared = columns.filter((column) => namesOf(column).some((name) => isCompared(condition, name)));
    if (compared.length === 0) continue;
    if (!condition.includes(" OR ")) return isIndexed(compared) ? [] : [compared];
    // The parts of an OR are looked up one by one, each by the first column of an index.
    const mayBeNull = compared.filter((column) =>
      namesOf(column).some((name) => condition.includes(`${name} IS NULL`)),
    );
    const best = [...mayBeNull].sort((one, other) => (distinct[other] ?? 0) - (distinct[one] ?? 0)).slice(0, 1);
    const needed = mayBeNull.length === compared.length ? best : compared;
    return needed.map((column) => [column]).filter((one) => !isIndexed(one));
  }
  return undefined;
}

/** One side of an equality, and not a part of it. What an index has as varchar is compared as a text. */
function isCompared(condition: string, column: string): boolean {
  const around = condition.split(column);
  return around.some((before, index) => {
    const after = around[index + 1];
    if (after === undefined) return false;
    const isLeft = /(^|[^\p{L}\p{N}_$"])\($/u.test(before) && after.startsWith(" = ");
    const isRight = before.endsWith(" = ") && (after === "" || after.startsWith(")"));
    const isLeftText = before.endsWith("((") && after.startsWith(")::text = ");
    const isRightText = before.endsWith(" = (") && after.startsWith(")::text)");
    return isLeft || isRight || isLeftText || isRightText;
  });
}

interface LargeTable {
  readonly schema: string;
  readonly name: string;
  readonly label: string;
  readonly rows: number;
  /** The columns of each index, in its order; null is an expression. */
  readonly indexes: readonly (readonly (string | null)[])[];
  /** Each column with quotes where it needs them, as EXPLAIN shows it. */
  readonly written: Readonly<Record<string, string>>;
  /** About how many values each column has, as far as it is known. */
  readonly distinct: Readonly<Record<string, number>>;
}

type LargeTableText = "schema" | "name" | "label" | "rows" | "indexes" | "written" | "distinct_values";

/** The table itself, or the partitioned one that it is a part of; undefined where it is small. */
async function largeTable(client: Client, schema: string, name: string): Promise<LargeTable | undefined> {
  const { rows } = await client.query<Record<LargeTableText, string>>(
    `SELECT n.nspname::text AS schema, c.relname::text AS name, format('%I.%I', n.nspname, c.relname) AS label,
            part.reltuples::text AS rows,
            (SELECT coalesce(json_agg((SELECT json_agg(a.attname ORDER BY k.n)
                                        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
                                        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                                       WHERE k.n <= i.indnkeyatts)), '[]')::text
               FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL) AS indexes,
            (SELECT json_object_agg(a.attname, quote_ident(a.attname))::text
               FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS written,
            (SELECT coalesce(json_object_agg(s.attname, s.n), '{}')::text
               FROM (SELECT attname, max(CASE WHEN n_distinct < 0 THEN -n_distinct * part.reltuples ELSE n_distinct END) AS n
                       FROM pg_stats WHERE schemaname = n.nspname AND tablename = c.relname GROUP BY attname) AS s) AS distinct_values
       FROM pg_class part JOIN pg_namespace pn ON pn.oid = part.relnamespace
       JOIN pg_class c ON c.oid = coalesce(pg_partition_root(part.oid), part.oid)
       JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE pn.nspname = $1 AND part.relname = $2 AND part.reltuples >= $3`,
    [schema, name, LARGE_TABLE_ROWS],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { indexes, written, rows: count, distinct_values: distinct, ...table } = row;
  return {
    ...table,
    rows: Number(count),
    distinct: JSON.parse(distinct) as LargeTable["distinct"],
    indexes: JSON.parse(indexes) as LargeTable["indexes"],
    written: JSON.parse(written) as LargeTable["written"],
  };
}
