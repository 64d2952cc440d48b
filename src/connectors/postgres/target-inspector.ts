import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import { type Client, connectForData } from "../../postgres/connection.ts";
import { askOnce, databaseId } from "../../postgres/database-id.ts";
import { databaseError, sqlState } from "../../postgres/errors.ts";
import { quoteIdentifier, quoteTable } from "../../postgres/identifiers.ts";
import type { InspectedTarget, TargetInspector, TargetQuestion } from "../inspector.ts";
import { EXACT_TEXT_SETTINGS } from "./data-session.ts";
import { chooseLoad } from "./loads/choose-load.ts";
import { inspectTargetTable, nameList, type TableName, targetTableOf } from "./target-table.ts";

export interface TargetInspectorConfig {
  readonly url: string;
  readonly applicationName: string;
  readonly timeoutMs: number;
  readonly canPull: boolean;
}

export function openTargetInspector(config: TargetInspectorConfig): TargetInspector {
  return {
    canPull: config.canPull,
    databaseId: askOnce(() => ask(config, databaseId)),
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

async function inspectTarget(client: Client, question: TargetQuestion): Promise<InspectedTarget> {
  const { target, columns, load } = question;
  if (target.kind !== "postgres") throw new VitrinaError("INTERNAL", `Not a PostgreSQL target: ${target.kind}.`);
  const found = await inspectTargetTable(client, target, question);
  const { exists, key, missing, extra, problems, warnings } = found;
  const base = { exists, key, missing, extra, problems, warnings };
  if (problems.length > 0) {
    return { ...base, strategy: undefined, isResumable: false, unassignable: [] };
  }
  const table = await targetTableOf(client, target, columns ?? found.existing, found);
  const chosen = chooseLoad(table, { load, guard: { allowEmpty: false, maxDeletePercent: 0 } });
  const written = (columns ?? []).filter(({ name }) => !missing.some((column) => column.name === name));
  return {
    ...base,
    strategy: chosen.name,
    isResumable: load.kind === "replace" && (await chosen.canResume(client)),
    unassignable: exists ? await unassignableColumns(client, target, written) : [],
  };
}

/** The server itself says what it would assign to what: it plans an INSERT, and executes none. */
async function unassignableColumns(
  client: Client,
  target: TableName,
  columns: readonly Column[],
): Promise<VitrinaError[]> {
  if ((await assignmentProblem(client, target, columns)) === undefined) return [];
  const found: VitrinaError[] = [];
  for (const column of columns) {
    const problem = await assignmentProblem(client, target, [column]);
    if (problem === undefined) continue;
    const label = `${quoteTable(target)}.${quoteIdentifier(column.name)}`;
    const message = `${label} cannot take a value of type ${column.type}: ${problem.message}.`;
    found.push(new VitrinaError("TARGET_TYPE_MISMATCH", message, { cause: problem }));
  }
  return found;
}

/** A type that does not exist here, two types without a cast, a column that computes itself. */
const UNASSIGNABLE = new Set(["42704", "42804", "42846", "428C9"]);

async function assignmentProblem(
  client: Client,
  target: TableName,
  columns: readonly Column[],
): Promise<Error | undefined> {
  if (columns.length === 0) return undefined;
  const values = columns.map(({ type }) => `NULL::${type}`).join(", ");
  try {
    await client.query(
      `SAVEPOINT trial; EXPLAIN INSERT INTO ${quoteTable(target)} (${nameList(columns)}) SELECT ${values}`,
    );
    return undefined;
  } catch (error) {
    if (!UNASSIGNABLE.has(sqlState(error) ?? "")) throw error;
    return error as Error;
  } finally {
    await client.query("ROLLBACK TO SAVEPOINT trial");
  }
}
