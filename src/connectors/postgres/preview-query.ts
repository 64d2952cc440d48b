import type { Column, Row } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { Preview, PreviewRequest } from "../inspector.ts";
import { type Watched, withDeadline } from "./deadline.ts";
import { describeQuery } from "./describe-query.ts";
import { asSubquery } from "./query-text.ts";
import { BEGIN, connectToSource, extended, sourceError } from "./read-session.ts";

/**
 * The first rows of a query. Texts are cut on the server, and rows are fetched a few at a time, so that no query can
 * fill the memory of this process.
 */
export async function previewQuery(config: Watched, request: PreviewRequest, signal: AbortSignal): Promise<Preview> {
  const deadline = performance.now() + request.timeoutMs;
  // The server itself notices when the client is gone, and ends the query.
  const client = await connectToSource(config, { client_connection_check_interval: "500ms" });
  const hangUp = (): void => void client.end();
  signal.addEventListener("abort", hangUp, { once: true });
  try {
    signal.throwIfAborted();
    return await withDeadline(client, deadline - performance.now(), config, async () => {
      await client.query(BEGIN);
      await allowUntil(client, deadline);
      const columns = await describeQuery(client, request.query);
      return firstRows(client, columns, request, deadline);
    });
  } catch (error) {
    throw sourceError(error);
  } finally {
    signal.removeEventListener("abort", hangUp);
    await client.end();
  }
}

async function firstRows(
  client: Client,
  columns: readonly Column[],
  { query, limit, maxCellCharacters, maxBytes }: PreviewRequest,
  deadline: number,
): Promise<Preview> {
  const cells = columns.map((column) => shortened(column, maxCellCharacters + 1)).join(", ");
  // One row more than wanted tells whether there are more.
  const statement = `SELECT ${cells} FROM ${asSubquery(query)} LIMIT ${limit + 1}`;
  await extended(client, `DECLARE preview NO SCROLL CURSOR FOR ${statement}`);
  const rowsAtOnce = Math.max(1, Math.floor(maxBytes / (columns.length * maxCellCharacters)));

  const rows: Row[] = [];
  const cut: { row: number; column: number }[] = [];
  for (let bytes = 0; ; ) {
    await allowUntil(client, deadline);
    const { rows: fetched } = await extended(client, `FETCH ${rowsAtOnce} FROM preview`);
    for (const row of fetched) {
      if (rows.length === limit) return { columns, rows, cut, complete: false };
      const cells = row.map((text) => (text === null ? null : cutText(text, maxCellCharacters)));
      bytes += cells.reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0);
      if (bytes > maxBytes) return { columns, rows, cut, complete: false };
      cells.forEach((text, column) => {
        if (text !== row[column]) cut.push({ row: rows.length, column });
      });
      rows.push(cells);
    }
    if (fetched.length < rowsAtOnce) return { columns, rows, cut, complete: true };
  }
}

/** `format` prints a value as COPY does, which a cast to text does not for every type; but it has no null. */
function shortened({ name }: Column, characters: number): string {
  const cell = `q.${quoteIdentifier(name)}`;
  return `CASE WHEN num_nulls(${cell}) = 0 THEN left(format('%s', ${cell}), ${characters}) END`;
}

/** Counted in characters, as the server counts them. */
function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const characters = [...text];
  return characters.length <= maxCharacters ? text : characters.slice(0, maxCharacters).join("");
}

/** The time limit is for all statements together. */
async function allowUntil(client: Client, deadline: number): Promise<void> {
  const leftMs = Math.max(1, Math.ceil(deadline - performance.now()));
  await client.query(`SET LOCAL statement_timeout = ${leftMs}`);
}
