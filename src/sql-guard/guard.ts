import type { SqlSession } from "../domain/sql-session.ts";
import { audit } from "./audit.ts";
import { findExcess } from "./limits.ts";
import { examine } from "./parse-tree.ts";
import { refusal } from "./refusal.ts";

/** What a query may touch. */
export interface GuardRules {
  readonly allowedSchemas: readonly string[];
}

/** Limits and the parse tree; needs no database. Throws QUERY_REFUSED, which says what, where and why. */
export async function checkQuery(query: string, rules: GuardRules): Promise<void> {
  const excess = await findExcess(query);
  if (excess !== undefined) throw refusal(query, [excess]);
  const findings = await examine(query, rules.allowedSchemas);
  if (findings.length > 0) throw refusal(query, findings);
}

/**
 * How PostgreSQL resolves the query: every relation and function it reaches, also through views. No part of the query
 * is executed, and everything is rolled back. `session` is a connection of the reader outside any transaction.
 */
export async function auditQuery(session: SqlSession, query: string, rules: GuardRules): Promise<void> {
  // The text becomes part of one of our statements, so it must first be proved to be a single statement itself.
  await checkQuery(query, rules);
  const findings = await audit(session, query, rules.allowedSchemas);
  if (findings.length > 0) throw refusal(query, findings);
}
