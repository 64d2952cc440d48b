import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Client, type ConnectionOptions, connectForData, resumeForData } from "../../postgres/connection.ts";
import { type DatabaseMark, markDatabase, seesMark } from "../../postgres/database-mark.ts";
import { databaseError } from "../../postgres/errors.ts";
import type { Comparison, Sink, SinkWriter, WayOfCommitting } from "../sink.ts";
import { openTableComparison } from "./comparison.ts";
import { EXACT_TEXT_SETTINGS } from "./data-session.ts";
import { openKeptCheckpoint } from "./kept-checkpoint.ts";
import { KeptSessions } from "./kept-sessions.ts";
import { chooseLoad } from "./loads/choose-load.ts";
import { dropTables, loadTables } from "./loads/load-table.ts";
import { namingHolders } from "./lock-holders.ts";
import { openPuller } from "./pull-batch.ts";
import { createStage } from "./stage.ts";
import { tableWriter } from "./table-writer.ts";
import type { TableTarget } from "./target.ts";
import { readTargetTable } from "./target-table.ts";
import { isGone } from "./write-transaction.ts";

export interface PostgresSinkConfig {
  /** The writer's login; or the loader's, which can also read the sources of the same database. */
  readonly url: string;
  readonly loaderUrl: string | undefined;
  readonly applicationName: string;
  /** Both shorter than the lease: a frozen runner must not wait for a lock, or hold one, longer than its lease. */
  readonly lockTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** A statement may take longer than the lease: the heartbeat keeps it, and the fence comes last. */
  readonly statementTimeoutMs: number;
}

export function openPostgresSink(config: PostgresSinkConfig): Sink<TableTarget> {
  const limits = writerLimits(config);
  const kept = new KeptSessions(
    () => openSession(config, limits),
    (client) => resumeForData(client, sessionOptions(config, limits)),
  );
  return {
    async open(request): Promise<SinkWriter> {
      const { target } = request;
      const deletesRows = request.load.kind === "upsert" && request.load.deletes === true;
      // Those that bring single keys up to date come often, and never read the source in this session.
      const taken = deletesRows ? await kept.take(request.cancelled) : undefined;
      const client = taken?.client ?? (await openWriterSession(config, request.cancelled));
      try {
        const databaseMark = await markDatabase(client);
        const commits: WayOfCommitting = (await request.isMetaStore(databaseMark))
          ? { way: "with-checkpoint" }
          : { way: "beside", kept: await openKeptCheckpoint(client, target.schema, request) };
        const table = await readTargetTable(client, target, request);
        const load = chooseLoad(table, request.load);
        const resumed = request.load.kind === "replace" && (await load.canResume(client));
        const canPull = config.loaderUrl !== undefined && !deletesRows;
        await createStage(client, table, canPull);
        const puller = canPull
          ? openPuller({ client, table, load, connect: () => openSibling(config, databaseMark, request.cancelled) })
          : undefined;
        const { giveBack } = taken ?? {};
        return tableWriter({ client, table, load, resumed, deletesRows, commits, databaseMark, puller, giveBack });
      } catch (error) {
        const failure = databaseError(error, "prepare the target", isGone(error) ? "TARGET_CHANGED" : "INTERNAL");
        const named = await namingHolders(client, target, error, failure);
        await client.end();
        throw named;
      }
    },

    async openComparison(request): Promise<Comparison> {
      const { target } = request;
      const { statementTimeoutMs: timeoutMs } = config;
      // While the source is read this session waits; it is given up when the source is.
      const client = await openSession(config, { lockMs: timeoutMs, idleMs: 2 * timeoutMs });
      try {
        return await openTableComparison(client, target, request);
      } catch (error) {
        await client.end();
        throw databaseError(error, "compare with the target");
      }
    },

    async clearAway({ target, pipelineId }): Promise<null> {
      const client = await openWriterSession(config);
      try {
        await dropTables(client, loadTables(target, pipelineId));
        return null;
      } catch (error) {
        throw databaseError(error, "clear away an unfinished load");
      } finally {
        await client.end();
      }
    },

    close: () => kept.close(),
  };
}

const writerLimits = (config: PostgresSinkConfig): SessionLimits => ({
  lockMs: config.lockTimeoutMs,
  idleMs: config.idleTimeoutMs,
});

function openWriterSession(config: PostgresSinkConfig, endSignal?: AbortSignal): Promise<Client> {
  return openSession(config, writerLimits(config), endSignal);
}

/** The address may now lead to another server: after a failover, or if its name stands for several servers. */
async function openSibling(config: PostgresSinkConfig, mark: DatabaseMark, endSignal: AbortSignal): Promise<Client> {
  const client = await openWriterSession(config, endSignal);
  if (await seesMark(client, mark)) return client;
  await client.end();
  const reason = "Two sessions of the target reached two different servers, or the first of them was ended.";
  throw new VitrinaError("DATABASE_UNAVAILABLE", reason);
}

interface SessionLimits {
  readonly lockMs: number;
  readonly idleMs: number;
}

async function openSession(
  config: PostgresSinkConfig,
  limits: SessionLimits,
  endSignal?: AbortSignal,
): Promise<Client> {
  return connectForData({ ...sessionOptions(config, limits), endSignal }).catch((error: unknown) => {
    throw databaseError(error, "connect to the target");
  });
}

function sessionOptions(config: PostgresSinkConfig, { lockMs, idleMs }: SessionLimits): ConnectionOptions {
  const { loaderUrl } = config;
  return {
    url: loaderUrl ?? config.url,
    applicationName: config.applicationName,
    settings: {
      ...EXACT_TEXT_SETTINGS,
      ...(loaderUrl !== undefined && { role: "vitrina_writer" }),
      statement_timeout: `${config.statementTimeoutMs}ms`,
      lock_timeout: `${lockMs}ms`,
      idle_in_transaction_session_timeout: `${idleMs}ms`,
      client_connection_check_interval: "2s",
      jit: "off",
    },
  };
}
