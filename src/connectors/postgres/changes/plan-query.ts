import { VitrinaError } from "../../../domain/error-catalogue.ts";
import { harmlessMessage, type ServerError } from "../../../domain/harmless-message.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import { statementsToExamine } from "../../../sql-analysis/examinable.ts";
import type { FollowPlan, FollowRefusal } from "../../../sql-analysis/follow-plan.ts";
import { planFollow } from "../../../sql-analysis/plan-follow.ts";
import { auditQuery, findInQuery, type GuardRules } from "../../../sql-guard/guard.ts";
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
    if (!isWritten || plan.refusals.length > 0) return plan;
    return { ...plan, refusals: await refusedKeys(session, plan, rules) };
  };
}

async function refusedKeys(
  session: SqlSession,
  plan: FollowPlan,
  rules: GuardRules,
): Promise<readonly FollowRefusal[]> {
  const refused: FollowRefusal[] = [];
  for (const { table, statement } of statementsToExamine(plan)) {
    const why = await whyRefused(session, statement, rules);
    if (why === undefined) continue;
    refused.push({ table, message: `The keys of ${table} are refused: ${why}.`, wayOut: "Correct follow.tables." });
  }
  return refused;
}

/** What cannot be planned is the fault of who wrote the keys, not of the query; and he never saw the statement as a whole. */
async function whyRefused(session: SqlSession, statement: string, rules: GuardRules): Promise<string | undefined> {
  try {
    const [found] = await findInQuery(session, statement, rules);
    return found?.what;
  } catch (error) {
    if (!(error instanceof VitrinaError && error.code === "SOURCE_QUERY_FAILED")) throw error;
    return harmlessMessage(error.cause as ServerError);
  }
}
