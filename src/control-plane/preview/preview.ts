import type { SourceRef } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { ApiParts } from "../api.ts";
import type { PreviewAnswer } from "./operations.ts";

/** Enough to recognise a value; the whole of it is in the source. */
const MAX_CELL_CHARACTERS = 1000;
const MAX_PREVIEW_BYTES = 1024 * 1024;

export interface PreviewQuestion {
  readonly query: string;
  readonly source: SourceRef;
  readonly limit: number;
}

/** Through every layer of the guard, as a run would be. */
export async function previewRows(
  { inspector, previewTimeoutMs }: Pick<ApiParts, "inspector" | "previewTimeoutMs">,
  { query, source: of, limit }: PreviewQuestion,
  signal: AbortSignal,
): Promise<PreviewAnswer> {
  await inspector.checkQuery(of, query);
  const source = await inspector.source(of);
  const limits = { timeoutMs: previewTimeoutMs, maxCellCharacters: MAX_CELL_CHARACTERS, maxBytes: MAX_PREVIEW_BYTES };
  try {
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
