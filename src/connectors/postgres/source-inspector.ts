import type { ChangesFrom } from "../../domain/follow.ts";
import type { Client } from "../../postgres/connection.ts";
import { seesMark } from "../../postgres/database-mark.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { auditQuery, checkQuery, type GuardRules } from "../../sql-guard/guard.ts";
import { unseenTables } from "../../sql-guard/unseen-tables.ts";
import type { SourceInspector } from "../inspector.ts";
import { cursorColumnProblems, cursorRowProblems, numbersAheadProblems, requireFittingStart } from "./change-cursor.ts";
import { followIndexes } from "./changes/follow-indexes.ts";
import { inspectChanges } from "./changes/inspect-changes.ts";
import { planQuery } from "./changes/plan-query.ts";
import type { Watched } from "./deadline.ts";
import { columnNameProblems, describeColumns, withoutOrigin } from "./describe-query.ts";
import { adviseIndex } from "./index-advice.ts";
import { previewQuery } from "./preview-query.ts";
import { asSubquery } from "./query-text.ts";
import { extended, questionSession } from "./read-session.ts";
import { canSeek, estimateRows } from "./seek-cost.ts";
import { tablesBehind } from "./tables-read.ts";
import { isUnique } from "./unique-columns.ts";

interface SourceInspectorConfig extends Watched, GuardRules {
  readonly timeoutMs: number;
  readonly changes?: ChangesFrom | undefined;
}

/** Answers with the same functions that a run uses, but with less time for each. */
export function openSourceInspector(config: SourceInspectorConfig): SourceInspector {
  // A wait for someone's ALTER TABLE has the same limit as everything else.
  const session = questionSession(
    { ...config, readTimeoutMs: config.timeoutMs },
    { lock_timeout: `${config.timeoutMs}ms` },
  );
  const changes = inspectChanges(config.changes);
  const audit = async (query: string): Promise<void> => {
    // What the text alone shows needs no connection.
    await checkQuery(query, config);
    await session.lend((lent) => auditQuery(lent, query, config));
  };
  return {
    async examine(query) {
      await audit(query);
      const columns = await session.ask((client) => describeColumns(client, query));
      return { columns: columns.map(withoutOrigin), problems: columnNameProblems(columns) };
    },
    tablesBehind: (names) => session.ask((client) => tablesBehind(client, names)),
    unseenTables: (query, key) => session.lend((lent) => unseenTables(lent, query, key)),
    cursorColumnProblems,
    numbersAheadProblems: (query, rules) => session.ask((client) => numbersAheadProblems(client, query, rules)),
    cursorRowProblems: (query, rules) => session.ask((client) => cursorRowProblems(client, query, rules)),
    requireFittingStart: (columns, rules) => session.ask((client) => requireFittingStart(client, columns, rules)),
    isUnique: (query, columns) => session.ask((client) => isUnique(client, query, columns)),
    repeatsKey: (query, key) => session.ask((client) => repeatsKey(client, query, key)),
    rowsWithoutKey: (query, key, limit) => session.ask((client) => countRows(client, query, lacksPart(key), limit)),
    rowsRefused: (query, refusals, limit) =>
      session.ask((client) => {
        const isRefused = refusals.map(({ condition }) => `(${condition})`).join(" OR ");
        return countRows(client, query, isRefused, limit);
      }),
    adviseIndex: (query, orderBy) => session.ask((client) => adviseIndex(client, query, orderBy)),
    estimateRows: (request) => session.ask((client) => estimateRows(client, request)),
    canSeek: (request, batchSize) => session.ask((client) => canSeek(client, request, batchSize)),
    seesMark: (mark) => session.ask((client) => seesMark(client, mark)),
    followPlan: (request) => session.lend((lent) => planQuery(config)(lent, request)),
    followIndexes: (plan) => session.ask((client) => followIndexes(client, plan)),
    changesState: (tables) => session.ask((client) => changes.state(client, tables)),
    changesScript: (request) => session.ask((client) => changes.scriptFor(client, request)),
    changesWaiting: (positions) => session.ask((client) => changes.waiting(client, positions)),
    async preview(request, signal) {
      await audit(request.query);
      return previewQuery(config, request, signal);
    },
    close: () => session.close(),
  };
}

async function repeatsKey(client: Client, query: string, key: readonly string[]): Promise<boolean> {
  const names = key.map((name) => `q.${quoteIdentifier(name)}`).join(", ");
  const { rows } = await extended(
    client,
    `SELECT EXISTS (SELECT 1 FROM ${asSubquery(query)} WHERE NOT (${lacksPart(key)}) GROUP BY ${names} HAVING count(*) > 1)`,
  );
  return rows[0]?.[0] === "t";
}

async function countRows(client: Client, query: string, condition: string, limit: number): Promise<number> {
  const found = `SELECT 1 FROM ${asSubquery(query)} WHERE ${condition} LIMIT ${limit}`;
  const { rows } = await extended(client, `SELECT count(*) FROM (${found}) AS r`);
  return Number(rows[0]?.[0]);
}

function lacksPart(key: readonly string[]): string {
  return key.map((name) => `q.${quoteIdentifier(name)} IS NULL`).join(" OR ");
}
