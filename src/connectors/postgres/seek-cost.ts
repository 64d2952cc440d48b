import type { Client } from "../../postgres/connection.ts";
import type { ReadRequest } from "../source.ts";
import { hasNullsIfCheap } from "./null-rows.ts";
import { plannedCost } from "./planned-cost.ts";
import { readStatement } from "./query-text.ts";
import { orderColumns } from "./read-session.ts";

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
  const order = await orderColumns(client, request.columns, request.orderBy);
  const statement = readStatement({ ...request, nulls: "none" }, order);
  const whole = await plannedCost(client, statement);
  learned(whole.isTrusted ? whole.rows : null);
  if (whole.rows > batchSize) {
    const batch = await plannedCost(client, `${statement}\nLIMIT ${batchSize}`);
    if (batch.cost * (whole.rows / batchSize) > whole.cost * TOLERATED_FACTOR) return false;
  }
  // Batches by position skip rows without a key, so those must be read another way: all at once.
  return (await hasNullsIfCheap(client, request.query, request.orderBy)) === false;
}

/** How many rows the planner expects a read to give; null if its estimate is worthless. */
export async function estimateRows(client: Client, request: ReadRequest): Promise<number | null> {
  const order = await orderColumns(client, request.columns, request.orderBy);
  const { rows, isTrusted } = await plannedCost(client, readStatement(request, order));
  return isTrusted ? rows : null;
}
