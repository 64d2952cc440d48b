import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Horizon } from "../../domain/watermark.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { UnstampedKey } from "../source.ts";
import { readStatement } from "./query-text.ts";
import { extended, orderColumns } from "./read-session.ts";

/** A table that the reader may read and Vitrina's own writer may fill: a mart that is the source of another one. */
const MARTS_ARE_READ = `
  EXISTS (SELECT FROM pg_class c JOIN pg_roles writer ON writer.rolname = 'vitrina_writer'
           WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
             AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(writer.oid, c.oid, 'INSERT'))`;

/**
 * Who could still commit rows that were stamped before now. Of all backends of this database, also the workers of
 * extensions and of subscriptions, whatever they call themselves: only vacuum writes no rows. Roles of Vitrina itself
 * write nothing but marts, so their transactions hold nothing back where no mart is a source.
 */
const WRITERS = `
  pg_stat_activity a
   WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type <> 'autovacuum worker'
     AND coalesce(a.usename <> ALL (ARRAY['vitrina_reader', 'vitrina_meta']), true)
     AND (coalesce(a.usename <> ALL (ARRAY['vitrina_writer', 'vitrina_loader']), true) OR ${MARTS_ARE_READ})`;

/** Up to when the origin of each subscription is known to have been applied. */
const APPLIED_UNTIL = `
  SELECT count(*) AS subscriptions, count(*) FILTER (WHERE one.until IS NULL) AS unknown, min(one.until) AS until
    FROM (SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_subscription_rel r WHERE r.srsubid = s.oid AND r.srsubstate <> 'r')
                      THEN (SELECT max(w.latest_end_time) FROM pg_stat_subscription w
                             WHERE w.subid = s.oid AND w.relid IS NULL) END AS until
            FROM pg_subscription s
           WHERE s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())) one`;

/**
 * A row that is still invisible was written by a transaction that has already begun, and carries a stamp from after
 * its beginning. So nothing older than the oldest transaction in flight can still appear. Two seconds cover the gap
 * between a session taking its start time and showing it.
 *
 * If the transaction began on another server, its start is not known here, only up to when that server's commits have
 * arrived. If even that is unknown, the position stays where it is.
 */
const HORIZON = `
  WITH oldest AS MATERIALIZED (SELECT min(a.xact_start) AS start FROM ${WRITERS})
  SELECT clock_timestamp()::text AS now,
         coalesce((SELECT start FROM oldest) > $1::timestamptz, true) AS settled,
         (least(clock_timestamp(), (SELECT start FROM oldest),
           CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_xact_replay_timestamp(), '-infinity')
                WHEN applied.unknown > 0 THEN '-infinity'
                ELSE applied.until END
          ) - interval '2 seconds')::text AS safe,
         CASE WHEN pg_is_in_recovery() THEN 'the source is a standby, which does not see the primary''s transactions'
              WHEN NOT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
                THEN 'the reader lacks pg_read_all_stats, so it does not see other sessions'
              WHEN EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())
                THEN 'there are prepared transactions, whose start is unknown'
              WHEN applied.unknown > 0
                THEN 'a subscription is not at work, so it is unknown what it will still bring; the position stays'
              WHEN applied.subscriptions > 0 THEN 'a subscription brings rows whose transactions began on another server'
              WHEN EXISTS (SELECT FROM ${WRITERS}
                              AND (a.state = 'disabled' OR (a.xact_start IS NULL AND a.backend_xid IS NOT NULL)))
                THEN 'there are sessions with track_activities = off, which do not show their transactions'
         END AS blind
    FROM (${APPLIED_UNTIL}) applied`;

/** The least look-back when transactions in flight cannot be seen. */
const DEFAULT_LOOKBACK_MS = 5 * 60 * 1000;

export async function takeHorizon(client: Client, lookbackMs: number, key?: UnstampedKey): Promise<Horizon> {
  // In this order: whoever holds a smaller value back has begun before the greatest was seen, or is over by now.
  const greatest = key === undefined ? undefined : await greatestValue(client, key);
  const { rows } = await client.query<{ now: string; safe: string; settled: string; blind: string | null }>(HORIZON, [
    greatest?.at ?? null,
  ]);
  const [row] = rows;
  if (row === undefined) throw new VitrinaError("INTERNAL", "The source did not return its time.");
  const method = row.blind === null ? "in-flight" : "look-back";
  const waitMs = method === "in-flight" ? lookbackMs : Math.max(lookbackMs, DEFAULT_LOOKBACK_MS);
  const { rows: shifted } = await client.query<{ safe: string }>(
    "SELECT ($1::timestamptz - make_interval(secs => $2::float8 / 1000))::text AS safe",
    [row.safe, waitMs],
  );
  const isSettled = method === "in-flight" && row.settled === "t" && lookbackMs === 0;
  const behindAll = key !== undefined && key.after !== null && greatest === undefined;
  const ceiling = isSettled ? (greatest?.value ?? null) : null;
  return { now: row.now, safe: shifted[0]?.safe ?? row.safe, method, reason: row.blind, ceiling, behindAll };
}

/** The greatest visible value of a key that is not a time, and a moment after it was seen. */
async function greatestValue(
  client: Client,
  { query, column, after }: UnstampedKey,
): Promise<{ value: string; at: string } | undefined> {
  const order = await orderColumns(client, [column], [column.name]);
  const request = { query, columns: [column], orderBy: [column.name], after, inclusive: true, nulls: "none" } as const;
  const { rows } = await extended(
    client,
    `SELECT ${quoteIdentifier(column.name)}::text, clock_timestamp()::text FROM (${readStatement(request, order, "DESC")} LIMIT 1) AS g`,
  );
  const [value, at] = rows[0] ?? [];
  return value == null || at == null ? undefined : { value, at };
}
