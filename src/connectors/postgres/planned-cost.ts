import type { Client } from "../../postgres/connection.ts";
import { extended } from "./read-session.ts";

export interface PlannedCost {
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

/** What the planner thinks of a statement. */
export async function plannedCost(client: Client, statement: string): Promise<PlannedCost> {
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
