import { planFollow } from "../../../sql-analysis/plan-follow.ts";
import type { PlanMaker } from "./follower.ts";
import { readQueryFacts } from "./query-facts.ts";

/** Asks the source what it makes of the query, and derives the plan from that. */
export const planQuery: PlanMaker = async (session, { query, key, tables }) =>
  planFollow(await readQueryFacts(session, query), key, tables);
