import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { plannedCost } from "./planned-cost.ts";
import { asSubquery } from "./query-text.ts";
import { extended } from "./read-session.ts";

/** In the planner's units, of which a server does about a hundred thousand a second. */
const MOST_COST_OF_QUESTION = 5_000;

/**
 * Whether rows of the query lack one of these columns; undefined if finding out would take long. An index answers at
 * once, but a query that aggregates would be computed for this alone: whoever reads it meets such rows anyway.
 */
export async function hasNullsIfCheap(
  client: Client,
  query: string,
  names: readonly string[],
): Promise<boolean | undefined> {
  const question = nullQuestion(query, names);
  const { cost } = await plannedCost(client, question);
  return cost > MOST_COST_OF_QUESTION ? undefined : answer(client, question);
}

export function hasNulls(client: Client, query: string, names: readonly string[]): Promise<boolean> {
  return answer(client, nullQuestion(query, names));
}

/** One question per column: no index helps with an OR. */
function nullQuestion(query: string, names: readonly string[]): string {
  const questions = names.map(
    (name) => `EXISTS (SELECT FROM ${asSubquery(query)} WHERE q.${quoteIdentifier(name)} IS NULL)`,
  );
  return `SELECT ${questions.join(" OR ")}`;
}

async function answer(client: Client, question: string): Promise<boolean> {
  const { rows } = await extended(client, question);
  return rows[0]?.[0] === "t";
}
