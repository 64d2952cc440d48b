import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Client, connectForData } from "../../postgres/connection.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteTable } from "../../postgres/identifiers.ts";
import type { CommitBatch, Sink, SinkRequest, SinkWriter } from "../sink.ts";
import type { Row } from "../source.ts";
import { EXACT_TEXT_SETTINGS } from "./data-session.ts";
import { mergeStatement } from "./merge-statement.ts";
import { prepareTargetTable } from "./target-table.ts";

export interface PostgresSinkConfig {
  readonly url: string;
  readonly applicationName: string;
  /** Both shorter than the lease: a frozen runner must not hold its locks longer than its lease. */
  readonly statementTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

export function openPostgresSink(config: PostgresSinkConfig): Sink {
  return {
    async prepare(request: SinkRequest): Promise<SinkWriter> {
      const { target } = request;
      if (target.kind !== "postgres") throw new VitrinaError("INTERNAL", `Not a PostgreSQL target: ${target.kind}.`);
      const client = await openWriterSession(config);
      try {
        const table = await prepareTargetTable(client, target, request);
        return tableWriter(client, mergeStatement(target, table), {
          label: quoteTable(target),
          key: table.key,
          keyIndexes: table.key.map((name) => request.columns.findIndex((column) => column.name === name)),
          width: request.columns.length,
        });
      } catch (error) {
        await client.end();
        throw databaseError(error, "prepare the target");
      }
    },
  };
}

async function openWriterSession(config: PostgresSinkConfig): Promise<Client> {
  return connectForData({
    url: config.url,
    applicationName: config.applicationName,
    settings: {
      ...EXACT_TEXT_SETTINGS,
      statement_timeout: `${config.statementTimeoutMs}ms`,
      lock_timeout: `${config.statementTimeoutMs}ms`,
      idle_in_transaction_session_timeout: `${config.idleTimeoutMs}ms`,
    },
  }).catch((error: unknown) => {
    throw databaseError(error, "connect to the target");
  });
}

interface TableShape {
  readonly label: string;
  readonly key: readonly string[];
  readonly keyIndexes: readonly number[];
  readonly width: number;
}

function tableWriter(client: Client, merge: string, shape: TableShape): SinkWriter {
  return {
    key: shape.key,

    async write<T>(rows: readonly Row[], commit: CommitBatch<T>): Promise<T> {
      const distinct = lastOfEachKey(rows, shape.keyIndexes);
      try {
        await client.query("BEGIN");
        const { rowCount } = await client.query({
          name: "merge",
          text: merge,
          values: toColumns(distinct, shape.width),
        });
        const written = rowCount ?? 0;
        const result = await commit(client, {
          rows_written: written,
          rows_unchanged: distinct.length - written,
          rows_deduplicated: rows.length - distinct.length,
        });
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => undefined);
        throw databaseError(error, `write to ${shape.label}`);
      }
    },

    close: () => client.end(),
  };
}

/** A key may be touched once per statement; the last row in reading order wins. */
function lastOfEachKey(rows: readonly Row[], keyIndexes: readonly number[]): readonly Row[] {
  const byKey = new Map<string, Row>();
  for (const row of rows) byKey.set(JSON.stringify(keyIndexes.map((index) => row[index])), row);
  return byKey.size === rows.length ? rows : [...byKey.values()];
}

function toColumns(rows: readonly Row[], width: number): (string | null)[][] {
  return Array.from({ length: width }, (_, column) => rows.map((row) => row[column] ?? null));
}
