import { VitrinaError } from "../domain/error-catalogue.ts";
import type { SqlSession } from "../domain/sql-session.ts";

/** What a query may touch. */
export interface GuardRules {
  readonly allowedSchemas: readonly string[];
}

/** Limits and the parse tree; needs no database. Throws QUERY_REFUSED, which says what, where and why. */
export async function checkQuery(_query: string, _rules: GuardRules): Promise<void> {
  throw new VitrinaError("INTERNAL", "The guard is not there yet.");
}

/**
 * What PostgreSQL makes of the query: every relation and function it reaches, also through views. Nothing of the query
 * is executed, and everything is rolled back. `session` is a connection of the reader outside any transaction.
 */
export async function auditQuery(_session: SqlSession, _query: string, _rules: GuardRules): Promise<void> {
  throw new VitrinaError("INTERNAL", "The guard is not there yet.");
}
