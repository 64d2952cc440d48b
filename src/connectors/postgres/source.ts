import { to as copyTo } from "pg-copy-streams";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { CopyTextReader } from "../../postgres/copy-text.ts";
import { databaseId } from "../../postgres/database-id.ts";
import { batchOfCopyText } from "../row-batch.ts";
import type { ReadRequest, Source, SourceReader } from "../source.ts";
import { nextStart, requireUsableCursor, takeHorizon } from "./change-cursor.ts";
import { describeQuery } from "./describe-query.ts";
import { readStatement } from "./query-text.ts";
import {
  inReadSession,
  openReadSession,
  orderColumns,
  type PostgresSourceConfig,
  sourceError,
} from "./read-session.ts";
import { canSeek } from "./seek-cost.ts";

/** Reads by one COPY per run: the query runs once, in one snapshot, with constant memory, and rows arrive as bytes. */
export function openPostgresSource(config: PostgresSourceConfig): Source {
  return {
    describe: (query) => inReadSession(config, (client) => describeQuery(client, query)),
    open: (request) => openReader(config, request),
    databaseId: () => inReadSession(config, databaseId),
    requireUsableCursor: (query, columns, rules) =>
      inReadSession(config, (client) => requireUsableCursor(client, query, columns, rules)),
    takeHorizon: (lookbackMs) => inReadSession(config, (client) => takeHorizon(client, lookbackMs)),
    nextStart: (end) => inReadSession(config, (client) => nextStart(client, end)),
    canSeek: (request, batchSize) => inReadSession(config, (client) => canSeek(client, request, batchSize)),
  };
}

async function openReader(config: PostgresSourceConfig, request: ReadRequest): Promise<SourceReader> {
  const client = await openReadSession(config);
  try {
    // COPY goes by the simple protocol, which takes several statements: the query must first prove to be just one.
    await describeQuery(client, request.query);
    const order = await orderColumns(client, request.columns, request.orderBy);
    const stream = client.query(copyTo(`COPY (${readStatement(request, order)}) TO STDOUT`));
    // A stream that is given up half-way reports it; whoever reads it learns of trouble by reading.
    stream.on("error", () => undefined);
    const reader = new CopyTextReader(stream);
    return {
      async read(limit) {
        const { bytes, count } = await withinTime(reader.take(limit), config.readTimeoutMs).catch((error: unknown) => {
          throw sourceError(error);
        });
        return batchOfCopyText(bytes, count);
      },
      close: () => client.end(),
    };
  } catch (error) {
    await client.end();
    throw sourceError(error);
  }
}

async function withinTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const seconds = Math.round(timeoutMs / 1000);
      reject(new VitrinaError("DATABASE_BUSY", `The source sent nothing for ${seconds} s (READ_TIMEOUT_SECONDS).`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
