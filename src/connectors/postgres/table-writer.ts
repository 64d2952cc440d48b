import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Row } from "../../domain/row.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { Client } from "../../postgres/connection.ts";
import { loadError, messageWithValues } from "../../postgres/errors.ts";
import { quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { batchOfRows, type RowBatch } from "../row-batch.ts";
import type { BatchResult, KeyRange, RejectedRow, SinkWriter, TargetKey, WayOfCommitting } from "../sink.ts";
import { countRowsWith, deleteGone, keysWithoutRow, presentKeys } from "./gone-keys.ts";
import type { TableLoad } from "./loads/load.ts";
import { inWordsOfTarget } from "./loads/load-table.ts";
import { SEEK_BY_KEY } from "./merge-statement.ts";
import type { Puller } from "./pull-batch.ts";
import { keepKeys, keysOf } from "./refused-keys.ts";
import { createTrialTables, findRefusedRows } from "./refused-rows.ts";
import { inspectStage, lastOfEachKey, refuseIn, STAGE } from "./stage.ts";
import { tableLossSince, takeTableMark } from "./target-mark.ts";
import { nameList, type TargetTable } from "./target-table.ts";
import { beginBatch, inOpenTransaction, writing } from "./write-transaction.ts";

export interface TableWriterParts {
  readonly client: Client;
  readonly table: TargetTable;
  readonly load: TableLoad;
  readonly resumed: boolean;
  readonly deletesRows: boolean;
  readonly commits: WayOfCommitting;
  readonly databaseMark: string;
  /** Where sessions can become the reader, so that rows of the same database need not leave it. */
  readonly puller: Puller | undefined;
  /** Keeps the session for the next run. */
  readonly giveBack?: (() => void) | undefined;
}

/** One session, one transaction per batch: stage → apply. It is left open, so that the checkpoint commits with it. */
export function tableWriter(parts: TableWriterParts): SinkWriter {
  const { client, table, load, resumed, deletesRows, commits, databaseMark, puller, giveBack } = parts;
  const begin = (prepare = async (_: Client): Promise<void> => undefined) =>
    inOpenTransaction(client, table.name, "BEGIN", async () => {
      await prepare(client);
      return {};
    });
  return {
    key: table.key.map(({ name }) => name),
    strategy: load.name,
    resumed,
    warnings: table.warnings,
    commits,
    takeMark: () => asking(table.name, () => takeTableMark(client, table)),
    lossSince: (mark) => asking(table.name, () => tableLossSince(client, table, mark)),
    deletesRows,
    databaseMark,
    pull: puller?.pull,
    snapshot: puller?.snapshot,
    begin: async () => (load.begin === undefined ? undefined : begin(load.begin)),
    giveUp: () => begin(load.begin),

    countUpTo: (limit) => asking(table.name, () => countRows(client, table.name, limit)),
    async countKeys(keys) {
      const counted = await inOpenTransaction(client, table.name, "BEGIN", async () => ({
        rows: await countRowsWith(client, table, keys),
      }));
      await counted.rollback();
      return counted.rows;
    },

    async write(batch, range, setRefusedAside, keys = []) {
      if (keys.length > 0 && !deletesRows)
        throw new VitrinaError("INTERNAL", `A load by ${load.name} deletes no keys.`);
      await puller?.rest();
      const write = setRefusedAside ? writeGoodRows : writeAll;
      return inOpenTransaction(client, table.name, beginBatch(load), async () => {
        const result = await write(parts, batch, range, keysWithoutRow(table, batch, keys));
        await faultPoint("batch_applied");
        return { result };
      });
    },

    finish: (guard) =>
      inOpenTransaction(client, table.name, "BEGIN", async () => {
        // Applying a whole load takes as long as it takes; the lease is locked only at the end.
        await client.query("SET LOCAL statement_timeout = 0");
        const finished = await load.finish(client, guard);
        await faultPoint("load_applied");
        return finished;
      }),

    ...(giveBack !== undefined && { rest: async () => giveBack() }),
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

async function countRows(client: Client, table: TableName, limit: number): Promise<number> {
  const { rows } = await client.query<{ n: string }>(
    `SELECT count(*) AS n FROM (SELECT FROM ${quoteTable(table)} LIMIT ${limit}) AS t`,
  );
  return Number(rows[0]?.n);
}

/** What is gone goes first: a row may have taken over a value that must be unique. */
async function writeAll(
  { client, table, load }: TableWriterParts,
  batch: RowBatch,
  range: KeyRange,
  gone: readonly TargetKey[],
): Promise<BatchResult> {
  await stageRows(client, table, batch);
  await faultPoint("batch_staged");
  const rows = await inspectStage(client, table);
  const rows_deleted = gone.length === 0 ? 0 : await deleteGone(client, table, gone, rows.relation);
  return { ...(await load.apply(client, { rows, range })), rows_deleted, rejects: [] };
}

/** The stage may still hold the previous batch, or one that failed. */
async function stageRows(client: Client, table: TargetTable, batch: RowBatch): Promise<void> {
  await client.query(`TRUNCATE ${STAGE}`);
  if (batch.count === 0) return;
  const stream = client.query(copyFrom(`COPY ${STAGE} (${nameList(table.columns)}) FROM STDIN`));
  await pipeline(Readable.from(batch.copyText(), { objectMode: false }), stream);
}

/**
 * Some rows of the batch were refused. They are found and set aside, and the others are written. A refused row still
 * accounts for its row in the target, which is neither changed nor deleted.
 */
async function writeGoodRows(
  { client, table, load }: TableWriterParts,
  batch: RowBatch,
  range: KeyRange,
  gone: readonly TargetKey[],
): Promise<BatchResult> {
  const rows_deleted =
    gone.length === 0 ? 0 : await deleteGone(client, table, gone, await presentKeys(client, table, batch.rows()));
  const names = table.columns.map(({ name }) => name);
  const trial = {
    rowType: STAGE,
    columns: names,
    given: names,
    statement: (relation: string) => `${refuseIn(table, relation)} ${load.trialOf(lastOfEachKey(table, relation))}`,
  };
  await createTrialTables(client, trial);
  await client.query(`SAVEPOINT seek; ${SEEK_BY_KEY}`);
  const refused = await findRefusedRows(client, writing(table.name), trial, batch);
  await client.query("ROLLBACK TO SAVEPOINT seek");
  const errors = new Map(refused.map(({ index, error }) => [index, error]));
  const rejects: RejectedRow[] = [];
  const good: Row[] = [];
  for (const [index, row] of batch.rows().entries()) {
    const error = errors.get(index);
    if (error === undefined) good.push(row);
    else rejects.push(rejected(row, error, table.name));
  }
  if (load.keepKeys !== undefined) {
    const refusedRows = rejects.map(({ row }) => row);
    await keepKeys(client, table, keysOf(table, refusedRows), load.keepKeys);
  }
  await stageRows(client, table, batchOfRows(good));
  const rows = await inspectStage(client, table);
  return { ...(await load.apply(client, { rows, range })), rows_deleted, rejects };
}

function rejected(row: Row, error: VitrinaError, table: TableName): RejectedRow {
  const shown = (message: string) => inWordsOfTarget(message, table);
  const { code, message } = error;
  return { row, code, error: shown(messageWithValues(error, writing(table))), reason: shown(message) };
}
