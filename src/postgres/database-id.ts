import type { SqlSession } from "../domain/sql-session.ts";

/** Some hosts do not let everybody ask; then two databases count as different, which is only slower. */
export async function databaseId(session: SqlSession): Promise<string | null> {
  const { rows } = await session
    .query("SELECT system_identifier || '/' || current_database() AS id FROM pg_control_system()")
    .catch(() => ({ rows: [] }));
  return (rows[0]?.["id"] as string | undefined) ?? null;
}
