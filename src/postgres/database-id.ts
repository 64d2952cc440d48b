import type { SqlSession } from "../domain/sql-session.ts";

/** A database does not become another one while the program runs, so asking once is enough. */
export function askOnce(ask: () => Promise<string | null>): () => Promise<string | null> {
  let known: string | null | undefined;
  return async () => {
    known ??= await ask();
    return known;
  };
}

/** Some hosts do not let everybody ask; then two databases count as different, which is only slower. */
export async function databaseId(session: SqlSession): Promise<string | null> {
  const { rows } = await session
    .query("SELECT system_identifier || '/' || current_database() AS id FROM pg_control_system()")
    .catch(() => ({ rows: [] }));
  return (rows[0]?.["id"] as string | undefined) ?? null;
}
