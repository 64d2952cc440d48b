import pg from "pg";

/** Runs a locking statement in a transaction of its own that stays open; the returned function ends it. */
export async function holdLock(url: string, sql: string, values: unknown[] = []): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  await client.query("BEGIN");
  await client.query(sql, values);
  return () => client.end();
}
