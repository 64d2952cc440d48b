import { faultPoint } from "../../observability/fault-points.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteIdentifier, quoteTable } from "../../postgres/identifiers.ts";
import type { PullBatch, PulledRows } from "../sink.ts";
import type { ReadRequest } from "../source.ts";
import { readStatement } from "./query-text.ts";
import { extended, orderColumns } from "./read-session.ts";
import { STAGE } from "./stage.ts";
import { commitStaged, inTransaction, type TableWriterParts } from "./table-writer.ts";
import { nameList } from "./target-table.ts";

/**
 * Push-down: one session reads and writes, so rows never leave the server. It does so in two transactions. In the
 * first it is the reader, and can write nothing but its own temporary stage; in the second it is the writer, and no
 * longer runs the user's query.
 */
export async function pullBatch<T>(
  parts: TableWriterParts,
  request: ReadRequest,
  limit: number,
  commit: Parameters<PullBatch>[2] extends never
    ? never
    : (...args: Parameters<Parameters<PullBatch>[2]>) => Promise<T>,
): Promise<{ count: number; result: T } | undefined> {
  const pulled = await stageFromSource(parts, request, limit);
  if (pulled.count === 0) return undefined;
  const { client, table, load } = parts;
  const result = await inTransaction(client, `write to ${quoteTable(table.name)}`, async () => {
    const applied = await load.apply(client);
    await load.applyRange(client, {
      after: request.after,
      upTo: pulled.count < limit ? null : pulled.position,
    });
    await faultPoint("batch_applied");
    return commitStaged(client, (transaction, done) => commit(transaction, pulled, done), { ...applied, rejects: [] });
  });
  return { count: pulled.count, result };
}

async function stageFromSource(
  { client, table }: TableWriterParts,
  request: ReadRequest,
  limit: number,
): Promise<PulledRows> {
  try {
    await client.query(`TRUNCATE ${STAGE}`);
    await client.query(`GRANT INSERT, SELECT ON ${STAGE} TO vitrina_reader`);
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE vitrina_reader");
    const order = await orderColumns(client, request.columns, request.orderBy);
    const { rowCount } = await extended(
      client,
      `INSERT INTO ${STAGE} (${nameList(table.columns)})\n${readStatement(request, order)}\nLIMIT ${limit}`,
    );
    const keys = request.orderBy.map((name) => `${quoteIdentifier(name)}::text`).join(", ");
    const { rows } = await extended(client, `SELECT ${keys} FROM ${STAGE} ORDER BY ctid DESC LIMIT 1`);
    await client.query("COMMIT");
    await faultPoint("batch_staged");
    return { count: rowCount ?? 0, position: (rows[0] ?? []).map((value) => value ?? "") };
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw databaseError(error, "read the source", "SOURCE_QUERY_FAILED");
  }
}
