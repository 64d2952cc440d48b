import type { Client } from "../../postgres/connection.ts";
import { type DescribedColumn, describeColumns } from "./describe-query.ts";
import { asSubquery } from "./query-text.ts";
import { extended } from "./read-session.ts";

/**
 * True when it is proven that no two rows of the query have the same non-null values in these columns. The columns
 * must show those of a unique index as they are, and the query must read that table once and nothing else: then it
 * gives each of its rows at most once.
 */
export async function isUnique(client: Client, query: string, names: readonly string[]): Promise<boolean> {
  const origins = (await describeColumns(client, query))
    .filter(({ name }) => names.includes(name))
    .flatMap(({ origin }) => origin ?? []);
  for (const relation of new Set(origins.map((origin) => origin.relation))) {
    const numbers = origins.filter((origin) => origin.relation === relation).map(({ column }) => column);
    if ((await hasUniqueIndex(client, relation, numbers)) && (await readsOnce(client, query))) return true;
  }
  return false;
}

/** An index of a table says nothing about the tables that inherit from it; one of a partitioned table covers all. */
async function hasUniqueIndex(
  client: Client,
  relation: number,
  columns: readonly NonNullable<DescribedColumn["origin"]>["column"][],
): Promise<boolean> {
  const { rows } = await client.query<{ unique: string }>(
    `SELECT EXISTS (
       SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
          AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhparent = c.oid))
          AND (i.indkey::int2[])[0:i.indnkeyatts - 1] <@ $2::int2[]) AS unique`,
    [relation, columns],
  );
  return rows[0]?.unique === "t";
}

interface ScanNode {
  readonly "Node Type": string;
  readonly "Parent Relationship"?: string;
  readonly Plans?: readonly ScanNode[];
}

/** Nodes that give each row of a single table at most once. What joins, appends or calls functions is not among them. */
const PASSING_ON: ReadonlySet<string> = new Set([
  "Seq Scan",
  "Index Scan",
  "Index Only Scan",
  "Bitmap Heap Scan",
  "Bitmap Index Scan",
  "BitmapAnd",
  "BitmapOr",
  "Sort",
  "Incremental Sort",
  "Limit",
  "Gather",
  "Gather Merge",
  "Subquery Scan",
]);

/** Asks the planner, which sees through views and brackets. Subqueries in expressions give values, not rows. */
async function readsOnce(client: Client, query: string): Promise<boolean> {
  const { rows } = await extended(client, `EXPLAIN (FORMAT JSON) SELECT * FROM ${asSubquery(query)}`);
  const [{ Plan: plan }] = JSON.parse(rows[0]?.[0] ?? "[]") as [{ Plan: ScanNode }];
  const passesOn = ({ "Node Type": type, Plans: below = [] }: ScanNode): boolean =>
    PASSING_ON.has(type) && below.filter((node) => !isOfExpression(node)).every(passesOn);
  return passesOn(plan);
}

const isOfExpression = (node: ScanNode): boolean => /^(SubPlan|InitPlan)$/.test(node["Parent Relationship"] ?? "");
