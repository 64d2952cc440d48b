import type { SqlSession } from "../domain/sql-session.ts";
import { audit } from "./audit.ts";
import { findExcess } from "./limits.ts";
import { examine } from "./parse-tree.ts";
import { type GuardFinding, refusal } from "./refusal.ts";

/** What a query may touch. */
export interface GuardRules {
  readonly allowedSchemas: readonly string[];
}

/** Limits and the parse tree; needs no database. Throws QUERY_REFUSED, which says what, where and why. */
export async function checkQuery(query: string, rules: GuardRules): Promise<void> {
  requireNone(query, await findInText(query, rules));
}

/**
 * How PostgreSQL resolves the query: every relation and function it reaches, also through views. No part of the query
 * is executed, and everything is rolled back. `session` is a connection of the reader outside any transaction.
 */
export async function auditQuery(session: SqlSession, query: string, rules: GuardRules): Promise<void> {
  requireNone(query, await findInQuery(session, query, rules));
}

/** What `auditQuery` would refuse: for queries of which people know only a part, so that places in it tell them nothing. */
export async function findInQuery(
  session: SqlSession,
  query: string,
  rules: GuardRules,
): Promise<readonly GuardFinding[]> {
  // The text becomes part of one of our statements, so it must first be proved to be a single statement itself.
  const found = await findInText(query, rules);
  return found.length > 0 ? found : audit(session, query, rules.allowedSchemas);
}

async function findInText(query: string, rules: GuardRules): Promise<readonly GuardFinding[]> {
  const excess = await findExcess(query);
  return excess === undefined ? examine(query, rules.allowedSchemas) : [excess];
}

function requireNone(query: string, findings: readonly GuardFinding[]): void {
  if (findings.length > 0) throw refusal(query, findings);
}
