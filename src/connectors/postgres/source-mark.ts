import type { SourceMark } from "../../domain/source-mark.ts";
import type { Client } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import { describeColumns } from "./describe-query.ts";

/** The timeline that the next write goes to; a standby tells the one of its last restart point. */
const SERVER = `
  SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
         CASE WHEN pg_is_in_recovery() THEN (SELECT lpad(to_hex(timeline_id), 8, '0') FROM pg_control_checkpoint())
              ELSE lower(left(pg_walfile_name(pg_current_wal_lsn()), 8)) END AS timeline`;

/** A materialised view has a new place after each refresh, so of that only the oid counts. */
const DATABASE = `
  SELECT (SELECT oid FROM pg_database WHERE datname = current_database())::text AS database,
         CASE WHEN NOT pg_is_in_recovery() THEN pg_snapshot_xmax(pg_current_snapshot()) END::text AS next,
         (SELECT concat_ws('/', oid, CASE WHEN relkind = 'r' THEN relfilenode END) FROM pg_class WHERE oid = $1::oid) AS table`;

type Parts = Partial<Record<keyof SourceMark, string | null>>;

export async function takeSourceMark(client: Client, query: string, key: string): Promise<SourceMark> {
  const columns = await describeColumns(client, query);
  const relation = columns.find(({ name }) => name === key)?.origin?.relation ?? null;
  const { rows } = await client.query<Parts>(DATABASE, [relation]);
  const { database = null, next = null, table = null } = rows[0] ?? {};
  const { system = null, timeline = null } = await askServer(client);
  return { system, database, timeline, next, table };
}

/** Hosted servers may keep these to themselves: then there is nothing to compare. */
async function askServer(client: Client): Promise<Parts> {
  await client.query("SAVEPOINT server");
  try {
    return (await client.query<Parts>(SERVER)).rows[0] ?? {};
  } catch (error) {
    if (sqlState(error) === undefined) throw error;
    await client.query("ROLLBACK TO SAVEPOINT server");
    return {};
  }
}
