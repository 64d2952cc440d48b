import { type ErrorCode, VitrinaError } from "../domain/error-catalogue.ts";
import { harmlessMessage, type ServerError } from "../domain/harmless-message.ts";

/** Turns what the driver or the server throws into an error of the catalogue, by its SQLSTATE class. */

const NETWORK_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EPIPE",
]);

/** The driver reports a closed connection without any code. */
const CLOSED_CONNECTION =
  /connection terminated|connection timeout|timeout exceeded when trying to connect|query read timeout|not queryable/i;

export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Each needs a different remedy than the rest of its class. */
const OF_ITS_OWN: readonly (readonly [state: string, code: ErrorCode])[] = [
  ["3D000", "DATABASE_MISSING"],
  ["53100", "DISK_FULL"],
  ["53300", "TOO_MANY_CONNECTIONS"],
  ["53400", "TEMP_FILE_LIMIT"],
];

function codeOfSqlState(state: string, fallback: ErrorCode): ErrorCode {
  const [, code] = OF_ITS_OWN.find(([own]) => own === state) ?? [];
  if (code !== undefined) return code;
  // 25006: the server that we write to is a standby, as after a failover, until its name points to the new primary.
  if (/^08|^57P0[12345]|^25006/.test(state)) return "DATABASE_UNAVAILABLE";
  if (/^40001|^40P01|^55P03|^57014|^53|^25P0[34]/.test(state)) return "DATABASE_BUSY";
  if (/^28|^42501/.test(state)) return "PERMISSION_DENIED";
  // A trigger that raises an error, and a row that is too large for an index or a page, affect this row only.
  if (/^22|^23|^P0001|^54000/.test(state)) return "ROW_REFUSED";
  return fallback;
}

function isNetworkError(error: Error): boolean {
  const code = (error as { code?: unknown }).code;
  return (typeof code === "string" && NETWORK_CODES.has(code)) || CLOSED_CONNECTION.test(error.message);
}

/** Of a connection that was lost while nothing was asked the driver only says that its client cannot be used. */
const LOST_WHILE_IDLE = /connection error and is not queryable/;

/** A refused connection to a name with several addresses arrives as an AggregateError without a message. */
function firstMessage(error: Error): string {
  if (LOST_WHILE_IDLE.test(error.message)) {
    return "the session was ended between two statements, by the server or by a person, or the network failed";
  }
  if (error.message !== "") return error.message;
  const inner = (error as AggregateError).errors?.[0];
  return inner instanceof Error ? inner.message : error.name;
}

/**
 * `what` says what was being done ("read the source"); `fallback` is the code for errors that have no class of their
 * own, such as bad SQL. Everybody may read the message, so it has no values of rows; `messageWithValues` has them.
 */
export function databaseError(error: unknown, what: string, fallback: ErrorCode = "INTERNAL"): VitrinaError {
  if (error instanceof VitrinaError) return error;
  if (!(error instanceof Error)) return new VitrinaError("INTERNAL", `Could not ${what}: ${String(error)}`);
  const state = sqlState(error);
  if (state !== undefined) {
    const message = `Could not ${what}: ${harmlessMessage(error as Error & ServerError)} (SQLSTATE ${state}).`;
    return new VitrinaError(codeOfSqlState(state, fallback), message, { cause: error });
  }
  const code = isNetworkError(error) ? "DATABASE_UNAVAILABLE" : "INTERNAL";
  return new VitrinaError(code, `Could not ${what}: ${firstMessage(error)}.`, { cause: error });
}

/** The server's own words, for those who may see the row as well. */
export function messageWithValues(error: VitrinaError, what: string): string {
  const { cause } = error;
  const state = sqlState(cause);
  if (!(cause instanceof Error) || state === undefined) return error.message;
  return `Could not ${what}: ${cause.message} (SQLSTATE ${state}).`;
}

const QUERY_CANCELED = "57014";

/**
 * The same for a statement of a load. Reaching the time limit that we set is not the server's fault: the same statement
 * would reach it again.
 */
export function loadError(error: unknown, what: string, fallback?: ErrorCode): VitrinaError {
  const failure = databaseError(error, what, fallback);
  // Only the message distinguishes a time limit from a person who cancels.
  const isOwnLimit = sqlState(error) === QUERY_CANCELED && !/user request/i.test((error as Error).message);
  return isOwnLimit ? new VitrinaError("STATEMENT_TIMEOUT", failure.message, { cause: error }) : failure;
}
