import { VitrinaError } from "../../../domain/error-catalogue.ts";
import { statementsToExamine } from "../../../sql-analysis/examinable.ts";
import { planFollow } from "../../../sql-analysis/plan-follow.ts";
import { auditQuery, type GuardRules } from "../../../sql-guard/guard.ts";
import type { PlanMaker } from "./follower.ts";
import { readQueryFacts } from "./query-facts.ts";

/**
 * Asks the source what it makes of the query, and derives the plan from that. Whoever asks for the first plan has examined the
 * query; a further plan is for a source that was altered, where a view may read and call anything by now. What a person wrote
 * under `follow.tables` is SQL as well, and judged like a query before anything of it is planned or run.
 */
export function planQuery(rules: GuardRules): PlanMaker {
  let isExamined = true;
  return async (session, { query, key, tables }) => {
    if (!isExamined) await auditQuery(session, query, rules);
    isExamined = false;
    const plan = await planFollow(await readQueryFacts(session, query), key, tables);
    const isWritten = Object.values(tables).some((choice) => "keys" in choice);
    if (isWritten) for (const statement of statementsToExamine(plan)) await auditKeys(session, statement, rules);
    return plan;
  };
}

async function auditKeys(...[session, statement, rules]: Parameters<typeof auditQuery>): Promise<void> {
  try {
    await auditQuery(session, statement, rules);
  } catch (error) {
    if (!(error instanceof VitrinaError) || error.code !== "QUERY_REFUSED") throw error;
    const message = `\`keys\` under follow.tables, as they are put into a statement: ${error.message}`;
    throw new VitrinaError("QUERY_REFUSED", message, { cause: error });
  }
}
