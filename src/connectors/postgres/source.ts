import { seesMark } from "../../postgres/database-mark.ts";
import { auditQuery, type GuardRules } from "../../sql-guard/guard.ts";
import { unseenTables } from "../../sql-guard/unseen-tables.ts";
import type { ReadRequest, Source } from "../source.ts";
import type { SourceReader } from "../source-reader.ts";
import { nextStart, requireUsableCursor } from "./change-cursor.ts";
import { openFollower } from "./changes/follower.ts";
import { planQuery } from "./changes/plan-query.ts";
import { watchChanges } from "./changes/watch.ts";
import { copyRows } from "./copy-reader.ts";
import { describeQuery } from "./describe-query.ts";
import { takeHorizon } from "./horizon.ts";
import { readStatement } from "./query-text.ts";
import {
  lockedSourceError,
  openReadSession,
  orderColumns,
  type PostgresSourceConfig,
  questionSession,
} from "./read-session.ts";
import { canSeek, estimateRows } from "./seek-cost.ts";
import { partsReachBack, takeSourceMark } from "./source-mark.ts";
import { isUnique } from "./unique-columns.ts";

/** Reads by one COPY per run: the query runs once, in one snapshot, with constant memory, and rows arrive as bytes. */
export function openPostgresSource(config: PostgresSourceConfig & GuardRules): Source {
  const session = questionSession(config);
  // From the question about seeking: a source serves one run, and asking again would cost it four round trips.
  let estimated: number | null | undefined;
  return {
    async examine(query) {
      // Again each time: a view may have been given another query since the pipeline was accepted.
      await session.lend((lent) => auditQuery(lent, query, config));
      return session.ask((client) => describeQuery(client, query));
    },
    unseenTables: (query, key) => session.lend((lent) => unseenTables(lent, query, key)),
    open: (request) => openReader(config, request),
    seesMark: (mark) => session.ask((client) => seesMark(client, mark)),
    takeMark: (query, key) => session.ask((client) => takeSourceMark(client, query, key)),
    partsReachBack: (query, key, parts, value) =>
      session.ask((client) => partsReachBack(client, query, key, parts, value)),
    requireUsableCursor: (query, columns, rules) =>
      session.ask((client) => requireUsableCursor(client, query, columns, rules)),
    isUnique: (query, columns) => session.ask((client) => isUnique(client, query, columns)),
    takeHorizon: (lookbackMs, key) => session.ask((client) => takeHorizon(client, lookbackMs, key)),
    nextStart: (end) => session.ask((client) => nextStart(client, end)),
    canSeek: (request, batchSize) =>
      session.ask((client) =>
        canSeek(client, request, batchSize, (rows) => {
          estimated = rows;
        }),
      ),
    estimateRows: async (request) =>
      estimated === undefined ? session.ask((client) => estimateRows(client, request)) : estimated,
    openFollower: (request) => openFollower(config, request, planQuery(config)),
    watchChanges: async () => watchChanges(config),
    rest: () => session.close(),
    close: () => session.close(),
  };
}

async function openReader(config: PostgresSourceConfig, request: ReadRequest): Promise<SourceReader> {
  const client = await openReadSession(config, request.snapshot);
  try {
    // COPY goes by the simple protocol, which takes several statements: the query must first prove to be just one.
    await describeQuery(client, request.query);
    const order = await orderColumns(client, request.columns, request.orderBy);
    return {
      read: copyRows(client, readStatement(request, order), config),
      close: () => client.end(),
    };
  } catch (error) {
    const failure = await lockedSourceError(client, error);
    await client.end();
    throw failure;
  }
}
