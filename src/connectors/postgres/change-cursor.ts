import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import {
  type CursorRules,
  cursorIsNull,
  cursorTypeProblem,
  type EndOfLoad,
  isNumberType,
  isTimeType,
  type KnownNulls,
  type NextStart,
  NO_WATERMARK,
  type Watermark,
} from "../../domain/watermark.ts";
import type { Client } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import { cachingSequences } from "./caching-sequences.ts";
import { hasNulls, hasNullsIfCheap } from "./null-rows.ts";
import { extended } from "./read-session.ts";

/** What an incremental load must know about its source; the source itself answers, since it can compare the values. */

export async function requireUsableCursor(
  client: Client,
  query: string,
  columns: readonly Column[],
  rules: CursorRules,
): Promise<KnownNulls> {
  const [ofColumns] = cursorColumnProblems(columns, rules);
  if (ofColumns !== undefined) throw ofColumns;
  const [ofNumbers] = await numbersAheadProblems(client, query, rules);
  if (ofNumbers !== undefined) throw ofNumbers;
  await requireFittingStart(client, columns, rules);
  if (rules.nulls !== "reject") return "allowed";
  const found = await hasNullsIfCheap(client, query, [rules.key]);
  if (found === true) throw cursorIsNull(rules.key);
  return found === undefined ? "unknown" : "none";
}

/** Problems that the columns of the query alone show, each with the field it is about. */
export function cursorColumnProblems(
  columns: readonly Column[],
  { key, idKey, lookbackNumbers }: CursorRules,
): VitrinaError[] {
  const wanted = { "/incremental_key": key, "/incremental_id_key": idKey };
  const missing = Object.entries(wanted).flatMap(([pointer, name]) => {
    if (name === null || columns.some((column) => column.name === name)) return [];
    const message = `The query returns no column ${quoteIdentifier(name)}.`;
    return [new VitrinaError("CURSOR_UNUSABLE", message, { problems: [{ pointer, message }] })];
  });
  const type = columns.find(({ name }) => name === key)?.type;
  const refused = type === undefined ? undefined : cursorTypeProblem(key, type);
  if (refused !== undefined) return [...missing, refused];
  if (lookbackNumbers === 0 || type === undefined || isNumberType(type)) return missing;
  const message = `lookback_numbers is for keys that are numbers, and ${quoteIdentifier(key)} is of type ${type}.`;
  const problem = { pointer: "/lookback_numbers", message };
  const hint = "Set it to 0; timestamps have lookback_seconds.";
  return [...missing, new VitrinaError("CURSOR_UNUSABLE", message, { problems: [problem], hint })];
}

/** A sequence with a cache: a session may commit the last of its numbers long after others commit greater ones. */
export async function numbersAheadProblems(
  client: Client,
  query: string,
  { key, lookbackNumbers }: Pick<CursorRules, "key" | "lookbackNumbers">,
): Promise<VitrinaError[]> {
  const sequences = await cachingSequences(client, query, key);
  return sequences
    .filter(({ cache }) => lookbackNumbers < cache)
    .map(({ name, cache }) => {
      const message = `${quoteIdentifier(key)} gets its numbers from ${name}, which gives each session ${cache} at a time.`;
      const problems = [{ pointer: "/incremental_key", message }];
      const hint = `Let its owner run ALTER SEQUENCE ${name} CACHE 1, use a timestamp as incremental_key, or set lookback_numbers to at least ${cache}: to more than are handed out while a session still holds some of its own.`;
      return new VitrinaError("CURSOR_NUMBERS_AHEAD", message, { problems, hint });
    });
}

/** Problems that only the rows show. */
export async function cursorRowProblems(
  client: Client,
  query: string,
  { key, nulls }: CursorRules,
): Promise<VitrinaError[]> {
  return nulls === "reject" && (await hasNulls(client, query, [key])) ? [cursorIsNull(key)] : [];
}

/** The error class of a text that is not a value of a type; any other error has another cause. */
const NOT_A_VALUE = /^22/;

/** A position may have been set by hand, or belong to a column that has changed its type. */
export async function requireFittingStart(
  client: Client,
  columns: readonly Column[],
  { key, idKey, start = NO_WATERMARK }: CursorRules,
): Promise<void> {
  const parts = [
    { column: columns.find(({ name }) => name === key), value: start.value },
    { column: columns.find(({ name }) => name === idKey), value: start.id },
  ];
  const casts = parts.flatMap(({ column, value }) =>
    column === undefined || value === null ? [] : [{ column, text: `${quoteLiteral(value)}::${column.type}` }],
  );
  if (casts.length === 0) return;
  try {
    // Both at once: every run asks, and hardly ever is anything wrong.
    await extended(client, `SELECT ${casts.map(({ text }) => text).join(", ")}`);
  } catch (error) {
    if (!NOT_A_VALUE.test(sqlState(error) ?? "")) throw error;
    await client.query("ROLLBACK");
    for (const { column, text } of casts) {
      await extended(client, `SELECT ${text}`).catch((cause: unknown) => {
        const detail = `The position of the pipeline is not a value of ${quoteIdentifier(column.name)}, which is of type ${column.type}.`;
        throw new VitrinaError("STATE_UNUSABLE", detail, { cause });
      });
    }
    throw error;
  }
}

/** The horizon as a value of the key's type. A timestamp without a zone may be in any zone, so the earliest counts. */
function horizonAs(type: string, safe: string): string {
  const instant = `${quoteLiteral(safe)}::timestamptz`;
  if (type.startsWith("timestamp") && type.endsWith("with time zone")) return instant;
  if (type.startsWith("timestamp")) return `((${instant} AT TIME ZONE 'UTC') - interval '14 hours')`;
  return `((${instant} AT TIME ZONE 'UTC')::date - 1)`;
}

export async function nextStart(client: Client, end: EndOfLoad): Promise<NextStart> {
  if (!isTimeType(end.keyType)) return promoteCandidate(client, end);
  return { watermark: await horizonWatermark(client, end), candidate: null };
}

/**
 * A number or a text cannot be compared with a moment. Its position waits as a candidate until every transaction that
 * was alive when it was reached has ended; the load that finds them ended has read their rows, because it started
 * before the candidate. If no such transaction was left even before the first read, there is nothing to wait for.
 */
async function promoteCandidate(client: Client, end: EndOfLoad): Promise<NextStart> {
  const { previous, candidate, reached, safe, ceiling } = end;
  const { rows } = await client.query<{ now: string; ended: string }>(
    "SELECT clock_timestamp()::text AS now, coalesce($1::timestamptz < $2::timestamptz, true) AS ended",
    [candidate?.at ?? null, safe],
  );
  const at = rows[0]?.now ?? safe;
  // Every row up to the ceiling could be read, so only what appeared above it has to wait.
  if (ceiling !== null && reached !== null) {
    if (reached.value === ceiling) return { watermark: reached, candidate: null };
    return { watermark: { value: ceiling, id: null }, candidate: { ...reached, at } };
  }
  if (rows[0]?.ended !== "t") return { watermark: previous, candidate };
  const watermark = candidate === null ? previous : { value: candidate.value, id: candidate.id };
  const moved = reached !== null && (reached.value !== watermark.value || reached.id !== watermark.id);
  return { watermark, candidate: moved ? { ...reached, at } : null };
}

/** For keys that are timestamps: as far as was read, but not beyond the horizon, and never back. */
async function horizonWatermark(client: Client, { keyType, previous, reached, safe }: EndOfLoad): Promise<Watermark> {
  if (reached === null || reached.value === null) return previous;
  const value = `${quoteLiteral(reached.value)}::${keyType}`;
  const horizon = horizonAs(keyType, safe);
  const before = previous.value === null ? "NULL" : `${quoteLiteral(previous.value)}::${keyType}`;
  const { rows } = await extended(
    client,
    `SELECT ${value} <= ${horizon}, (${horizon})::${keyType}::text, coalesce(least(${value}, ${horizon}) < ${before}, false)`,
  );
  const [within, horizonText, wouldGoBack] = rows[0] ?? [];
  if (wouldGoBack === "t") return previous;
  return within === "t" ? reached : { value: horizonText ?? null, id: null };
}
