import { isDeepStrictEqual } from "node:util";
import { repeatedKey } from "../../domain/reading-plan.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { Client } from "../../postgres/connection.ts";
import { loadError } from "../../postgres/errors.ts";
import type { PulledBatch, SinkWriter } from "../sink.ts";
import type { ReadRequest } from "../source.ts";
import type { TableLoad } from "./loads/load.ts";
import { namingHolders } from "./lock-holders.ts";
import { type OrderColumn, readStatement, upTo } from "./query-text.ts";
import { BEGIN, beginError, beginIn, extended, orderColumns } from "./read-session.ts";
import { createStage, inspectStage, STAGE, type StagedRows } from "./stage.ts";
import { nameList, type TargetTable } from "./target-table.ts";
import { beginBatch, inOpenTransaction } from "./write-transaction.ts";

export interface PullerParts {
  /** The writer's session, with its stage. */
  readonly client: Client;
  readonly table: TargetTable;
  readonly load: TableLoad;
  /** Another session like it. */
  connect(): Promise<Client>;
}

/**
 * Push-down: a session reads and writes, so rows never leave the server. It does so in two transactions. In the first
 * it is the reader, and can write nothing but its own temporary stage; in the second it is the writer, and no longer
 * runs the user's query. Two sessions take turns: while one writes its batch, the other reads the next. A third one
 * only holds the snapshot in which all batches are read.
 */
export interface Puller {
  readonly pull: NonNullable<SinkWriter["pull"]>;
  readonly snapshot: () => Promise<string>;
  /** Resolves when the writer's session is free for other work. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

interface Lane {
  readonly client: Client;
  /** The stage may hold rows that are no longer wanted. */
  isDirty: boolean;
}

interface RowsOfSource extends Pick<PulledBatch, "count" | "position"> {
  readonly rows: StagedRows;
}

interface BatchInLane extends RowsOfSource {
  readonly lane: Lane;
}

interface BatchAhead {
  readonly after: ReadRequest["after"];
  readonly limit: number;
  readonly batch: Promise<BatchInLane>;
}

export function openPuller({ client, table, load, connect }: PullerParts): Puller {
  const first: Lane = { client, isDirty: false };
  let second: Promise<Lane> | undefined;
  let ahead: BatchAhead | undefined;
  let order: readonly OrderColumn[] | undefined;
  let holder: Promise<{ session: Client; snapshot: string }> | undefined;

  const snapshot = async (): Promise<string> => {
    holder ??= holdSnapshot(connect);
    return (await holder).snapshot;
  };

  const stage = async (lane: Lane, request: ReadRequest, limit: number): Promise<BatchInLane> => {
    order ??= await orderColumns(lane.client, request.columns, request.orderBy);
    const asReader = `${beginIn(await snapshot())}; ${AS_READER}`;
    const begin = lane.isDirty ? `${EMPTY_STAGE}; ${asReader}` : asReader;
    lane.isDirty = true;
    return { lane, ...(await stageFromSource(lane.client, table, request, order, limit, begin)) };
  };

  const readAhead = (behind: BatchInLane, request: ReadRequest, limit: number): void => {
    second ??= openLane(connect, table);
    const free = behind.lane === first ? second : Promise.resolve(first);
    const next = { ...request, after: behind.position };
    const batch = free.then((lane) => stage(lane, next, limit));
    batch.catch(() => undefined); // handled when it is awaited
    ahead = { after: next.after, limit, batch };
  };

  const dropAhead = async (): Promise<void> => {
    await ahead?.batch.catch(() => undefined);
    ahead = undefined;
  };

  const takeBatch = async (request: ReadRequest, limit: number): Promise<BatchInLane> => {
    if (ahead?.limit === limit && isDeepStrictEqual(ahead.after, request.after)) {
      const { batch } = ahead;
      ahead = undefined;
      return batch;
    }
    await dropAhead();
    return stage(first, request, limit);
  };

  return {
    snapshot,

    async rest() {
      await dropAhead();
      first.isDirty = true;
    },

    async pull(request, limit) {
      const batch = await takeBatch(request, limit);
      if (batch.count === 0) return undefined;
      const isLast = batch.count < limit;
      if (!isLast) readAhead(batch, request, limit);
      const session = batch.lane.client;
      const range = { after: request.after, upTo: isLast ? null : batch.position };
      return inOpenTransaction(session, table.name, beginBatch(load), async () => {
        const applied = await load.apply(session, { rows: batch.rows, range });
        await faultPoint("batch_applied");
        return { count: batch.count, position: batch.position, result: { ...applied, rows_deleted: 0, rejects: [] } };
      });
    },

    async close() {
      await second?.then((lane) => lane.client.end()).catch(() => undefined);
      await holder?.then(({ session }) => session.end()).catch(() => undefined);
    },
  };
}

async function openLane(connect: PullerParts["connect"], table: TargetTable): Promise<Lane> {
  const client = await connect();
  await createStage(client, table, true);
  return { client, isDirty: false };
}

/** Nothing of it outlives the session, so there is nothing to wait for. */
const EMPTY_STAGE = `BEGIN; SET LOCAL synchronous_commit = off; TRUNCATE ${STAGE}; COMMIT`;
const AS_READER = "SET LOCAL ROLE vitrina_reader";

/** It holds no lock, and goes with the connection: so it may idle for as long as the load takes. */
async function holdSnapshot(connect: () => Promise<Client>): Promise<{ session: Client; snapshot: string }> {
  const session = await connect();
  try {
    await session.query(`${BEGIN}; SET LOCAL idle_in_transaction_session_timeout = 0; ${AS_READER}`);
    const { rows } = await session.query("SELECT pg_export_snapshot() AS snapshot");
    return { session, snapshot: rows[0]?.snapshot };
  } catch (error) {
    await session.end();
    throw loadError(error, "take a snapshot of the source");
  }
}

async function stageFromSource(
  client: Client,
  table: TargetTable,
  request: ReadRequest,
  order: readonly OrderColumn[],
  limit: number,
  begin: string,
): Promise<RowsOfSource> {
  try {
    await client.query(begin).catch((error: unknown) => {
      throw beginError(error);
    });
    const { rowCount } = await extended(
      client,
      `INSERT INTO ${STAGE} (${nameList(table.columns)})\n${readStatement(request, order)}\nLIMIT ${limit}`,
    );
    const rows = await inspectStage(client, table, request.orderBy);
    if (request.eachOnce && rowCount === limit) await requireSingle(client, request, order, rows.position);
    await client.query("COMMIT");
    await faultPoint("batch_staged");
    return { rows, count: rowCount ?? 0, position: rows.position };
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw await namingHolders(client, undefined, error, loadError(error, "read the source", "SOURCE_QUERY_FAILED"));
  }
}

/** The next batch begins after the last key of this one: a second row with that key would be skipped. */
async function requireSingle(
  client: Client,
  request: ReadRequest,
  order: readonly OrderColumn[],
  position: PulledBatch["position"],
): Promise<void> {
  const fromKey = readStatement({ ...request, after: position, inclusive: true }, order);
  const ofKey = upTo(position, order, "r");
  const { rows } = await extended(client, `SELECT count(*) FROM (${fromKey}\nLIMIT 2) AS r WHERE ${ofKey}`);
  if (Number(rows[0]?.[0]) > 1) throw repeatedKey(request.orderBy);
}
