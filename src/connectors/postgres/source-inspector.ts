import type { Client } from "../../postgres/connection.ts";
import { databaseId } from "../../postgres/database-id.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { SourceInspector } from "../inspector.ts";
import { cursorColumnProblems, cursorRowProblems } from "./change-cursor.ts";
import { columnNameProblems, describeColumns } from "./describe-query.ts";
import { adviseIndex } from "./index-advice.ts";
import { previewQuery } from "./preview-query.ts";
import { asSubquery } from "./query-text.ts";
import { connectToSource, extended, questionSession, sourceError } from "./read-session.ts";
import { canSeek, estimateRows } from "./seek-cost.ts";

interface SourceInspectorConfig {
  readonly url: string;
  readonly applicationName: string;
  readonly timeoutMs: number;
}

/** Answers with the very functions that a run decides by, only with less time for each. */
export function openSourceInspector(config: SourceInspectorConfig): SourceInspector {
  const { timeoutMs } = config;
  const session = questionSession({ ...config, readTimeoutMs: timeoutMs });
  return {
    async audit(check) {
      const client = await connectToSource(config, { statement_timeout: `${timeoutMs}ms` });
      try {
        await check(client);
      } catch (error) {
        throw sourceError(error);
      } finally {
        await client.end();
      }
    },
    describe: (query) =>
      session.ask(async (client) => {
        const columns = await describeColumns(client, query);
        return {
          columns: columns.map(({ name, type }) => ({ name, type })),
          problems: columnNameProblems(columns),
        };
      }),
    cursorColumnProblems,
    cursorRowProblems: (query, rules) => session.ask((client) => cursorRowProblems(client, query, rules)),
    repeatsKey: (query, key) => session.ask((client) => repeatsKey(client, query, key)),
    adviseIndex: (query, orderBy) => session.ask((client) => adviseIndex(client, query, orderBy)),
    estimateRows: (request) => session.ask((client) => estimateRows(client, request)),
    canSeek: (request, batchSize) => session.ask((client) => canSeek(client, request, batchSize)),
    databaseId: () => session.ask(databaseId),
    preview: (request, signal) => previewQuery(config, request, signal),
    close: () => session.close(),
  };
}

async function repeatsKey(client: Client, query: string, key: readonly string[]): Promise<boolean> {
  const names = key.map((name) => `q.${quoteIdentifier(name)}`).join(", ");
  const { rows } = await extended(
    client,
    `SELECT EXISTS (SELECT 1 FROM ${asSubquery(query)} GROUP BY ${names} HAVING count(*) > 1)`,
  );
  return rows[0]?.[0] === "t";
}
