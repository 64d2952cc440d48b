import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Row } from "../../domain/row.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { Client } from "../../postgres/connection.ts";
import { loadError, messageWithValues, sqlState } from "../../postgres/errors.ts";
import { quoteTable } from "../../postgres/identifiers.ts";
import { batchOfRows, type RowBatch } from "../row-batch.ts";
import type { BatchResult, CommitBatch, KeptCheckpoint, KeyRange, RejectedRow, SinkWriter } from "../sink.ts";
import type { Load } from "./loads/load.ts";
import { inWordsOfTarget } from "./loads/load-table.ts";
import { namingHolders } from "./lock-holders.ts";
import { SEEK_BY_KEY } from "./merge-statement.ts";
import type { Puller } from "./pull-batch.ts";
import { createTrialTables, findRefusedRows } from "./refused-rows.ts";
import { inspectStage, lastOfEachKey, refuseIn, STAGE } from "./stage.ts";
import { tableLossSince, takeTableMark } from "./target-mark.ts";
import { nameList, type TableName, type TargetTable } from "./target-table.ts";

export interface TableWriterParts {
  readonly client: Client;
  readonly table: TargetTable;
  readonly load: Load;
  readonly resumed: boolean;
  readonly kept: KeptCheckpoint | undefined;
  readonly together: boolean;
  readonly databaseMark: string;
  /** Where sessions can become the reader, so that rows of the same database need not leave it. */
  readonly puller: Puller | undefined;
}

/** One session, one transaction per batch: stage → apply → checkpoint → commit. */
export function tableWriter(parts: TableWriterParts): SinkWriter {
  const { client, table, load, resumed, puller } = parts;
  const begin: SinkWriter["begin"] = async (fence) => {
    if (load.begin === undefined) return;
    await inTransaction(client, table.name, async () => {
      await load.begin?.(client);
      await fence(client);
    });
  };
  return {
    key: table.key.map(({ name }) => name),
    strategy: load.name,
    resumed,
    warnings: table.warnings,
    kept: parts.kept,
    takeMark: () => asking(table.name, () => takeTableMark(client, table.name)),
    lossSince: (mark) => asking(table.name, () => tableLossSince(client, table.name, mark)),
    together: parts.together,
    deletesRows: false,
    databaseMark: parts.databaseMark,
    pull: puller?.pull,
    snapshot: puller?.snapshot,
    begin,
    giveUp: begin,

    async write(batch, range, commit) {
      await puller?.rest();
      try {
        return await inBatch(client, load, table.name, () => writeAll(parts, batch, range, commit));
      } catch (error) {
        if (!(error instanceof VitrinaError) || error.retry !== "row") throw error;
        return await inBatch(client, load, table.name, () => writeGoodRows(parts, batch, range, commit));
      }
    },

    async finish(commit) {
      return inTransaction(client, table.name, async () => {
        // Applying a whole load takes as long as it takes; the lease is locked only at the end.
        await client.query("SET LOCAL statement_timeout = 0");
        const result = await load.finish(client);
        await faultPoint("load_applied");
        return commit(client, result);
      });
    },

    async close() {
      await Promise.all([client.end(), puller?.close()]);
    },
  };
}

async function asking<T>(table: TableName, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw loadError(error, writing(table));
  }
}

/** By push-down the session has read the source before, where a function that got past the audit may have changed it. */
const OWN_SEARCH_PATH = "SET LOCAL search_path = pg_catalog, pg_temp";

export function inBatch<T>(client: Client, load: Load, table: TableName, work: () => Promise<T>): Promise<T> {
  return inTransaction(client, table, work, `BEGIN; ${OWN_SEARCH_PATH}; ${load.batchSettings}`);
}

async function inTransaction<T>(client: Client, table: TableName, work: () => Promise<T>, begin = "BEGIN"): Promise<T> {
  try {
    await client.query(begin);
    await faultPoint("transaction_begun");
    const result = await work();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw await namingHolders(client, table, error, writeError(error, table));
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
  const rows = await inspectStage(client, table);
  const result = await load.apply(client, { rows, range, complete: true });
  await faultPoint("batch_applied");
  return commitStaged(client, commit, { ...result, rejects: [] });
}

export async function commitStaged<T>(client: Client, commit: CommitBatch<T>, result: BatchResult): Promise<T> {
  const answer = await commit(preparing(client), result);
  await faultPoint("checkpoint_recorded");
  return answer;
}

/** The statements of a checkpoint come again with every batch: the server parses and plans them once. */
function preparing(client: Client): SqlSession {
  return {
    query: (text, values) =>
      client.query({ name: createHash("md5").update(text).digest("hex"), text, values: values ?? [] }),
  };
}

/** The stage may hold the batch before, or one that failed. */
async function stageRows(client: Client, table: TargetTable, batch: RowBatch): Promise<void> {
  await client.query(`TRUNCATE ${STAGE}`);
  if (batch.count === 0) return;
  const stream = client.query(copyFrom(`COPY ${STAGE} (${nameList(table.columns)}) FROM STDIN`));
  await pipeline(Readable.from(batch.copyText(), { objectMode: false }), stream);
}

/**
 * Some rows of the batch were refused. They are found and set aside, and the others are written; nothing is deleted in
 * their range, because a refused row still stands for its row in the target.
 */
async function writeGoodRows<T>(
  { client, table, load }: TableWriterParts,
  batch: RowBatch,
  range: KeyRange,
  commit: CommitBatch<T>,
): Promise<T> {
  const names = table.columns.map(({ name }) => name);
  const trial = {
    rowType: STAGE,
    columns: names,
    given: names,
    statement: (relation: string) => `${refuseIn(table, relation)} ${load.trialOf(lastOfEachKey(table, relation))}`,
  };
  await createTrialTables(client, trial);
  if (load.batchSettings === "") await client.query(SEEK_BY_KEY);
  const refused = await findRefusedRows(client, writing(table.name), trial, batch);
  const errors = new Map(refused.map(({ index, error }) => [index, error]));
  const rejects: RejectedRow[] = [];
  const good: Row[] = [];
  for (const [index, row] of batch.rows().entries()) {
    const error = errors.get(index);
    if (error === undefined) good.push(row);
    else rejects.push(rejected(row, error, table.name));
  }
  await stageRows(client, table, batchOfRows(good));
  const rows = await inspectStage(client, table);
  const result = await load.apply(client, { rows, range, complete: false });
  await faultPoint("batch_applied");
  return commitStaged(client, commit, { ...result, rejects });
}

function rejected(row: Row, error: VitrinaError, table: TableName): RejectedRow {
  const shown = (message: string) => inWordsOfTarget(message, table);
  const { code, message } = error;
  return { row, code, error: shown(messageWithValues(error, writing(table))), reason: shown(message) };
}

function writing(table: TableName): string {
  return `write to ${quoteTable(table)}`;
}

/** A column or a table that was there when the load was opened. */
export function isGone(error: unknown): boolean {
  return ["42703", "42P01"].includes(sqlState(error) ?? "");
}

function writeError(error: unknown, table: TableName): VitrinaError {
  if (error instanceof VitrinaError) return error;
  const fallback = isGone(error) ? "TARGET_CHANGED" : "INTERNAL";
  const { known, message } = loadError(error, writing(table), fallback);
  return new VitrinaError(known, inWordsOfTarget(message, table), { cause: error });
}
