import pg from "pg";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type DataDir, errorCode } from "./data-dir.ts";

/** Creates the database `vitrina` unless it is there. */
export async function ensureDatabase(dir: DataDir, url: string): Promise<void> {
  const everyClusterHasIt = new URL("/postgres", url).href;
  // The driver takes anything not given here from the environment (PGSSLMODE, PGOPTIONS), meant for other servers.
  const options = "-c search_path=pg_catalog,pg_temp";
  const client = new pg.Client({ connectionString: everyClusterHasIt, ssl: false, options });
  try {
    await client.connect();
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = 'vitrina'");
    if (rowCount === 0) await client.query("CREATE DATABASE vitrina");
  } catch (cause) {
    if (errorCode(cause) === "28P01") throw wrongPassword(dir);
    throw cause;
  } finally {
    await client.end();
  }
}

export function wrongPassword(dir: DataDir): VitrinaError {
  return new VitrinaError(
    "DATA_DIR_UNUSABLE",
    `The file ${dir.passwordFile} does not hold the password of the database in ${dir.cluster}.`,
    { hint: "Restore the file, or delete the data folder to start from scratch." },
  );
}
