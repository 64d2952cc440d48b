import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { ReadRequest } from "../source.ts";
import { asSubquery, readStatement } from "./query-text.ts";
import { extended, orderColumns } from "./read-session.ts";

/** One statement per batch may cost this much more than one statement for all: it holds no long snapshot. */
const TOLERATED_FACTOR = 2;

/**
 * Asks the planner: a query that can be entered at any position through an index gives a batch for a share of the
 * whole cost; one that must aggregate or sort first would do all its work again for every batch. `learned` is called
 * with how many rows the planner expects, if it was asked.
 */
export async function canSeek(
  client: Client,
  request: ReadRequest,
  batchSize: number,
  learned: (rows: number | null) => void = () => undefined,
): Promise<boolean> {
  if (await hasNulls(client, request)) return false;
  const order = await orderColumns(client, request.columns, request.orderBy);
  const statement = readStatement({ ...request, nulls: "none" }, order);
  const whole = await estimate(client, statement);
  learned(whole.isTrusted ? whole.rows : null);
  if (whole.rows <= batchSize) return true;
  const batch = await estimate(client, `${statement}\nLIMIT ${batchSize}`);
  return batch.cost * (whole.rows / batchSize) <= whole.cost * TOLERATED_FACTOR;
}

/** Batches by position skip rows without a key, so those must be read another way: all at once. */
async function hasNulls(client: Client, { query, orderBy }: ReadRequest): Promise<boolean> {
  const missing = orderBy.map((name) => `q.${quoteIdentifier(name)} IS NULL`).join(" OR ");
  const { rows } = await extended(client, `SELECT EXISTS (SELECT 1 FROM ${asSubquery(query)} WHERE ${missing})`);
  return rows[0]?.[0] === "t";
}

/** How many rows the planner expects a read to give; null if its estimate is worthless. */
export async function estimateRows(client: Client, request: ReadRequest): Promise<number | null> {
  const order = await orderColumns(client, request.columns, request.orderBy);
  const { rows, isTrusted } = await estimate(client, readStatement(request, order));
  return isTrusted ? rows : null;
}

interface Estimate {
  readonly cost: number;
  readonly rows: number;
  readonly isTrusted: boolean;
}

interface CostNode {
  readonly "Node Type": string;
  readonly "Parent Relationship"?: string;
  readonly Strategy?: string;
  readonly "Total Cost"?: number;
  readonly "Plan Rows"?: number;
  readonly Plans?: readonly CostNode[];
}

async function estimate(client: Client, statement: string): Promise<Estimate> {
  const { rows } = await extended(client, `EXPLAIN (FORMAT JSON) ${statement}`);
  const [{ Plan: plan }] = JSON.parse(rows[0]?.[0] ?? "[]") as [{ Plan: CostNode }];
  return { cost: plan["Total Cost"] ?? 0, rows: plan["Plan Rows"] ?? 0, isTrusted: isCounted(plan) };
}

/** The planner can only guess how many groups, distinct rows or function results there are. */
const GUESSED = /Aggregate|Group|Unique|SetOp|ProjectSet|Function Scan|Recursive Union|Limit/;

function isCounted({ "Node Type": type, Strategy: strategy, Plans: parts = [] }: CostNode): boolean {
  // Without groups an aggregate gives one row, whatever it reads.
  if (type === "Aggregate" && strategy === "Plain") return true;
  const feeding = parts.filter(({ "Parent Relationship": place = "" }) => !/InitPlan|SubPlan/.test(place));
  return !GUESSED.test(type) && feeding.every(isCounted);
}
