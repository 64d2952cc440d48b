import { to as copyTo } from "pg-copy-streams";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { CopyTextReader } from "../../postgres/copy-text.ts";
import { batchOfCopyText } from "../row-batch.ts";
import type { ReadBatch } from "../source-reader.ts";
import { lockedSourceError, type PostgresSourceConfig } from "./read-session.ts";

/**
 * Reads the rows of a SELECT by COPY. COPY goes by the simple protocol, which takes several statements: the caller has
 * proved that the text is just one.
 */
export function copyRows(
  client: Client,
  select: string,
  config: Pick<PostgresSourceConfig, "batchBytes" | "readTimeoutMs">,
): (limit: number) => Promise<ReadBatch> {
  const stream = client.query(copyTo(`COPY (${select}) TO STDOUT`));
  // A stream that is abandoned half-way emits an error; the reader learns of real errors by reading.
  stream.on("error", () => undefined);
  const reader = new CopyTextReader(stream);
  return async (limit) => {
    const taking = reader.take(limit, config.batchBytes);
    const { bytes, count, isLast } = await withinTime(taking, config.readTimeoutMs).catch(async (error: unknown) => {
      throw await lockedSourceError(client, error);
    });
    return { ...batchOfCopyText(bytes, count), isLast };
  };
}

async function withinTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const seconds = Math.round(timeoutMs / 1000);
      reject(new VitrinaError("STATEMENT_TIMEOUT", `The source sent nothing for ${seconds} s (READ_TIMEOUT_SECONDS).`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
