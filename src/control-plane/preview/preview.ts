import { VitrinaError } from "../../domain/error-catalogue.ts";
import { auditQuery, checkQuery } from "../../sql-guard/guard.ts";
import type { ApiParts } from "../api.ts";
import type { PreviewAnswer } from "./operations.ts";

/** Enough to recognise a value; the whole of it is in the source. */
const MAX_CELL_CHARACTERS = 1000;
const MAX_PREVIEW_BYTES = 1024 * 1024;

export interface PreviewQuestion {
  readonly query: string;
  readonly connection: string;
  readonly limit: number;
}

/** Through every layer of the guard, as a run would be. */
export async function previewRows(
  { inspector, guard, previewTimeoutMs }: Pick<ApiParts, "inspector" | "guard" | "previewTimeoutMs">,
  { query, connection, limit }: PreviewQuestion,
  signal: AbortSignal,
): Promise<PreviewAnswer> {
  await checkQuery(query, guard);
  const source = inspector.source(connection);
  if (source === undefined) {
    throw new VitrinaError("SOURCE_CONNECTION_UNKNOWN", `There is no source connection "${connection}".`);
  }
  const limits = { timeoutMs: previewTimeoutMs, maxCellCharacters: MAX_CELL_CHARACTERS, maxBytes: MAX_PREVIEW_BYTES };
  try {
    await source.audit((session) => auditQuery(session, query, guard));
    const { columns, rows, cut, complete } = await source.preview({ query, limit, ...limits }, signal);
    return { columns: [...columns], rows: rows.map((row) => [...row]), cut: [...cut], complete };
  } catch (error) {
    throw asFaultOfQuery(error, previewTimeoutMs);
  } finally {
    await source.close();
  }
}

/** What the source does not allow, or takes too long for, is here the query's fault, not Vitrina's. */
function asFaultOfQuery(error: unknown, timeoutMs: number): unknown {
  if (!(error instanceof VitrinaError)) return error;
  switch (error.code) {
    case "DATABASE_BUSY":
    case "STATEMENT_TIMEOUT":
      return new VitrinaError("QUERY_TOO_SLOW", `The query gave no rows within ${timeoutMs / 1000} s.`, {
        cause: error,
      });
    case "PERMISSION_DENIED":
      return new VitrinaError("SOURCE_QUERY_FAILED", error.message, {
        cause: error,
        hint: "Grant the reader what the detail names, or leave it out of the query.",
      });
    default:
      return error;
  }
}
