/**
 * The smallest thing that can run SQL. The writer of a PostgreSQL target hands its open transaction to the meta-store
 * in this form, so that data and checkpoint commit together without the two knowing each other.
 */
export interface SqlSession {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
}
