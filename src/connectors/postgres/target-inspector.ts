import { type Client, connectForData } from "../../postgres/connection.ts";
import { markDatabase } from "../../postgres/database-mark.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { InspectedTarget, TargetInspector, TargetQuestion } from "../inspector.ts";
import { EXACT_TEXT_SETTINGS } from "./data-session.ts";
import { chooseLoad } from "./loads/choose-load.ts";
import type { TableTarget } from "./target.ts";
import { inspectTargetTable, targetTableOf } from "./target-table.ts";

export interface TargetInspectorConfig {
  readonly url: string;
  readonly applicationName: string;
  readonly timeoutMs: number;
  readonly canPull: boolean;
}

export function openTargetInspector(config: TargetInspectorConfig): TargetInspector<TableTarget> {
  return {
    canPull: config.canPull,
    isSeenBy: (look) => ask(config, async (client) => look(await markDatabase(client))),
    inspect: (question) => ask(config, (client) => inspectTarget(client, question)),
  };
}

async function ask<T>(config: TargetInspectorConfig, question: (client: Client) => Promise<T>): Promise<T> {
  const timeout = `${config.timeoutMs}ms`;
  const client = await connectForData({
    url: config.url,
    applicationName: config.applicationName,
    settings: {
      ...EXACT_TEXT_SETTINGS,
      default_transaction_read_only: "on",
      statement_timeout: timeout,
      lock_timeout: timeout,
      idle_in_transaction_session_timeout: timeout,
    },
  }).catch((error: unknown) => {
    throw databaseError(error, "connect to the target");
  });
  try {
    await client.query("BEGIN READ ONLY");
    return await question(client);
  } catch (error) {
    throw databaseError(error, "inspect the target");
  } finally {
    await client.end();
  }
}

async function inspectTarget(client: Client, question: TargetQuestion<TableTarget>): Promise<InspectedTarget> {
  const { target, columns, load } = question;
  const found = await inspectTargetTable(client, target, question);
  const { exists, key, missing, extra, problems, warnings } = found;
  const base = { exists, key, missing, extra, problems, warnings };
  if (problems.length > 0) {
    return { ...base, strategy: undefined, isResumable: false, refusals: [] };
  }
  const table = await targetTableOf(client, target, columns ?? found.existing, found);
  const chosen = chooseLoad(table, load);
  return {
    ...base,
    strategy: chosen.name,
    isResumable: load.kind === "replace" && (await chosen.canResume(client)),
    refusals: [...table.conversions].flatMap(([name, { refuses, reason }]) => {
      const column = quoteIdentifier(name);
      return refuses === undefined ? [] : [{ condition: refuses(`q.${column}`), reason: `${column} ${reason}` }];
    }),
  };
}
