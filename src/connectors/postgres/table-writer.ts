import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Row } from "../../domain/row.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { Client } from "../../postgres/connection.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteTable } from "../../postgres/identifiers.ts";
import { batchOfRows, type RowBatch } from "../row-batch.ts";
import type { BatchResult, CommitBatch, KeptCheckpoint, KeyRange, RejectedRow, SinkWriter } from "../sink.ts";
import type { Load } from "./loads/load.ts";
import { pullBatch } from "./pull-batch.ts";
import { STAGE } from "./stage.ts";
import { nameList, type TargetTable } from "./target-table.ts";

export interface TableWriterParts {
  readonly client: Client;
  readonly table: TargetTable;
  readonly load: Load;
  readonly resumed: boolean;
  readonly kept: KeptCheckpoint | undefined;
  /** The session can become the reader, so that rows of the same database need not leave it. */
  readonly canPull: boolean;
}

/** One session, one transaction per batch: stage → apply → checkpoint → commit. */
export function tableWriter(parts: TableWriterParts): SinkWriter {
  const { client, table, load, resumed } = parts;
  const what = `write to ${quoteTable(table.name)}`;
  return {
    key: table.key.map(({ name }) => name),
    strategy: load.name,
    resumed,
    kept: parts.kept,
    transaction: (work) => inTransaction(client, what, () => work(client)),
    pull: parts.canPull ? (request, limit, commit) => pullBatch(parts, request, limit, commit) : undefined,

    begin: (fence) =>
      inTransaction(client, what, async () => {
        await load.begin(client);
        await fence(client);
      }),

    async write(batch, range, commit) {
      try {
        return await inTransaction(client, what, () => writeAll(parts, batch, range, commit));
      } catch (error) {
        if (!(error instanceof VitrinaError) || error.retry !== "row") throw error;
        return await inTransaction(client, what, () => writeGoodRows(parts, batch, commit));
      }
    },

    async finish(commit) {
      return inTransaction(client, what, async () => {
        // Applying a whole load takes as long as it takes; the lease is locked only at the end.
        await client.query("SET LOCAL statement_timeout = 0");
        const result = await load.finish(client);
        await faultPoint("load_applied");
        return commit(client, result);
      });
    },

    close: () => client.end(),
  };
}

export async function inTransaction<T>(client: Client, what: string, work: () => Promise<T>): Promise<T> {
  try {
    await client.query("BEGIN");
    await faultPoint("transaction_begun");
    const result = await work();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw databaseError(error, what);
  }
}

async function writeAll<T>(
  { client, table, load }: TableWriterParts,
  batch: RowBatch,
  range: KeyRange,
  commit: CommitBatch<T>,
): Promise<T> {
  await stageRows(client, table, batch);
  await faultPoint("batch_staged");
  const result = await load.apply(client);
  await load.applyRange(client, range);
  await faultPoint("batch_applied");
  return commitStaged(client, commit, { ...result, rejects: [] });
}

export async function commitStaged<T>(client: Client, commit: CommitBatch<T>, result: BatchResult): Promise<T> {
  const answer = await commit(client, result);
  await faultPoint("checkpoint_recorded");
  return answer;
}

/** The stage may hold the batch before, or one that failed. */
async function stageRows(client: Client, table: TargetTable, batch: RowBatch): Promise<void> {
  await client.query(`TRUNCATE ${STAGE}`);
  if (batch.count === 0) return;
  const stream = client.query(copyFrom(`COPY ${STAGE} (${nameList(table.columns)}) FROM STDIN`));
  await pipeline(Readable.from([batch.copyText()], { objectMode: false }), stream);
}

/**
 * Some rows of the batch were refused. They are found by halving: each part is tried and undone. The others are
 * written; nothing is deleted in their range, because a refused row still stands for its row in the target.
 */
async function writeGoodRows<T>(parts: TableWriterParts, batch: RowBatch, commit: CommitBatch<T>): Promise<T> {
  const { client, table, load } = parts;
  const rejects: RejectedRow[] = [];
  const good = await findGoodRows(parts, batch.rows(), rejects);
  await stageRows(client, table, batchOfRows(good));
  const result = await load.apply(client);
  await faultPoint("batch_applied");
  return commitStaged(client, commit, { ...result, rejects });
}

async function findGoodRows(
  parts: TableWriterParts,
  rows: readonly Row[],
  rejects: RejectedRow[],
): Promise<readonly Row[]> {
  const error = await tryRows(parts, rows);
  if (error === undefined) return rows;
  const [row] = rows;
  if (rows.length === 1 && row !== undefined) {
    rejects.push({ row, code: error.code, error: error.message });
    return [];
  }
  const middle = Math.ceil(rows.length / 2);
  const first = await findGoodRows(parts, rows.slice(0, middle), rejects);
  const second = await findGoodRows(parts, rows.slice(middle), rejects);
  return [...first, ...second];
}

async function tryRows(
  { client, table, load }: TableWriterParts,
  rows: readonly Row[],
): Promise<VitrinaError | undefined> {
  await client.query("SAVEPOINT try");
  try {
    await stageRows(client, table, batchOfRows(rows));
    await load.apply(client);
    return undefined;
  } catch (error) {
    const failure = databaseError(error, `write to ${quoteTable(table.name)}`);
    if (failure.retry !== "row") throw failure;
    return failure;
  } finally {
    await client.query("ROLLBACK TO SAVEPOINT try").catch(() => undefined);
  }
}
