import { createHash } from "node:crypto";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { Client } from "../../postgres/connection.ts";
import { loadError, sqlState } from "../../postgres/errors.ts";
import { quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Uncommitted } from "../sink.ts";
import type { TableLoad } from "./loads/load.ts";
import { inWordsOfTarget } from "./loads/load-table.ts";
import { namingHolders } from "./lock-holders.ts";

/** With push-down the session has read the source before, where a function that got past the audit may have set it. */
const OWN_SEARCH_PATH = "SET LOCAL search_path = pg_catalog, pg_temp";

export const beginBatch = ({ batchSettings }: TableLoad): string => `BEGIN; ${OWN_SEARCH_PATH}; ${batchSettings}`;

/** Does the work in a transaction, and leaves it open for the checkpoint. What fails is rolled back. */
export async function inOpenTransaction<T extends object>(
  client: Client,
  table: TableName,
  begin: string,
  work: () => Promise<T>,
): Promise<T & Uncommitted> {
  let isOpen = true;
  const rollback = async (): Promise<void> => {
    if (isOpen) await client.query("ROLLBACK").catch(() => undefined);
    isOpen = false;
  };
  const orRollBack = async <R>(step: () => Promise<R>): Promise<R> => {
    try {
      return await step();
    } catch (error) {
      await rollback();
      throw await namingHolders(client, table, error, writeError(error, table));
    }
  };
  const done = await orRollBack(async () => {
    await client.query(begin);
    await faultPoint("transaction_begun");
    return work();
  });
  const commit = async (): Promise<void> => {
    await orRollBack(() => client.query("COMMIT"));
    isOpen = false;
  };
  return { ...done, transaction: preparing(client, table), commit, rollback };
}

/** The statements of a checkpoint repeat with every batch: the server parses and plans them once. */
function preparing(client: Client, table: TableName): SqlSession {
  return {
    query: (text, values) =>
      client
        .query({ name: createHash("md5").update(text).digest("hex"), text, values: values ?? [] })
        .catch((error: unknown) => {
          throw writeError(error, table);
        }),
  };
}

export function writing(table: TableName): string {
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
