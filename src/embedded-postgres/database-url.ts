import { dataDirUnusable, existingDataDir, readPassword } from "./data-dir.ts";
import { findRunningServer } from "./running-server.ts";

export function databaseUrl(password: string, port: number): string {
  return `postgres://vitrina:${password}@127.0.0.1:${port}/vitrina`;
}

/** The superuser's URL of the server that runs on the data folder; undefined when none does. */
export async function embeddedDatabaseUrl(folder: string): Promise<string | undefined> {
  const dir = await existingDataDir(folder);
  if (!dir) return undefined;
  try {
    const server = await findRunningServer(dir);
    const password = await readPassword(dir);
    return server?.port && password ? databaseUrl(password, server.port) : undefined;
  } catch (cause) {
    throw dataDirUnusable(dir.root, cause);
  }
}
