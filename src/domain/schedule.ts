/** When a pipeline runs by itself: every so often, or by cron in a time zone. Time is always passed in. */
import { Cron } from "croner";
import { VitrinaError } from "./error-catalogue.ts";

export type Schedule =
  | { readonly kind: "interval"; readonly everyMs: number }
  | { readonly kind: "cron"; readonly expression: string; readonly timeZone: string };

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const UNIT_MS = new Map([
  ["weeks", 7 * DAY_MS],
  ["days", DAY_MS],
  ["hours", HOUR_MS],
  ["minutes", MINUTE_MS],
  ["seconds", SECOND_MS],
]);
const MIN_INTERVAL_MS = SECOND_MS;
/** Far beyond any use; keeps every due time a valid date. */
const MAX_INTERVAL_MS = 1000 * DAY_MS;

const MAX_TEXT_LENGTH = 200;
const SHORT_INTERVAL = /^(?:(?<days>\d+)d)?(?:(?<hours>\d+)h)?(?:(?<minutes>\d+)m)?(?:(?<seconds>\d+)s)?$/;
const ISO_DURATION =
  /^P(?=.)(?:(?<weeks>\d+)W)?(?:(?<days>\d+)D)?(?:T(?=.)(?:(?<hours>\d+)H)?(?:(?<minutes>\d+)M)?(?:(?<seconds>\d+)S)?)?$/i;
const MONTHS_OR_YEARS = /^(?:P(?:\d+[WD])*\d+[YM]|\d+(?:y|mo))/i;

const CRON_FIELD_COUNT = 5;
const CRON_FIELD = /^[0-9A-Za-z*,/#?-]+$/;
const CRON_NICKNAMES = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);
/** Newer Node.js also takes offsets such as +03:00 for time zones; they know no summer time, so only names pass. */
const TIME_ZONE_NAME = /^[A-Za-z][\w+-]*(?:\/[\w+-]+)*$/;
/** Cron repeats with the calendar, so whether it ever matches does not depend on today. */
const ANY_DATE = new Date("2000-01-01T00:00:00Z");

export function parseSchedule(text: string): Schedule {
  const trimmed = text.trim();
  if (trimmed === "") throw invalid("The schedule is empty.");
  if (trimmed.length > MAX_TEXT_LENGTH) throw invalid(`The schedule is longer than ${MAX_TEXT_LENGTH} characters.`);
  return /^@|\s/.test(trimmed) ? parseCron(trimmed) : parseInterval(trimmed);
}

/**
 * The next due time strictly after `after`. An interval counts on from `lastDue`, so missed runs
 * collapse into the one after `after` and never pile up.
 */
export function nextRunAt(schedule: Schedule, after: Date, lastDue: Date = after): Date {
  if (schedule.kind === "interval") {
    const elapsedTicks = Math.floor((after.getTime() - lastDue.getTime()) / schedule.everyMs);
    return new Date(lastDue.getTime() + (elapsedTicks + 1) * schedule.everyMs);
  }
  const next = nextMatch(schedule.expression, schedule.timeZone, after);
  if (next === null) throw invalid(`"${schedule.expression}" has no run after ${after.toISOString()}.`);
  return next;
}

function parseInterval(text: string): Schedule {
  const match = SHORT_INTERVAL.exec(text) ?? ISO_DURATION.exec(text);
  if (match === null) throw invalid(explainBadInterval(text));
  let everyMs = 0;
  for (const [unit, unitMs] of UNIT_MS) everyMs += Number(match.groups?.[unit] ?? 0) * unitMs;
  if (everyMs < MIN_INTERVAL_MS) throw invalid(`The interval ${quote(text)} is shorter than 1 second.`);
  if (everyMs > MAX_INTERVAL_MS) throw invalid(`The interval ${quote(text)} is longer than 1000 days.`);
  return { kind: "interval", everyMs };
}

function explainBadInterval(text: string): string {
  return MONTHS_OR_YEARS.test(text)
    ? `${quote(text)} counts months or years, whose length varies: count in days (30d), or use cron (0 0 1 * *).`
    : `${quote(text)} is neither an interval such as 15m, 1h30m or PT15M nor a cron expression such as 0 3 * * * Europe/Moscow.`;
}

function parseCron(text: string): Schedule {
  const words = text.split(/\s+/);
  const fieldCount = text.startsWith("@") ? 1 : CRON_FIELD_COUNT;
  if (words.length < fieldCount || words.length > fieldCount + 1) {
    throw invalid(
      `${quote(text)} is not cron: write five fields and, if you like, a time zone (0 3 * * * Europe/Moscow).`,
    );
  }
  const timeZone = words[fieldCount] ?? "UTC";
  const fields = words.slice(0, fieldCount).join(" ");
  const expression = fieldCount === 1 ? expandNickname(fields) : fields;
  requireTimeZone(timeZone);
  requireMatch(expression, timeZone);
  return { kind: "cron", expression, timeZone };
}

function expandNickname(nickname: string): string {
  const expression = CRON_NICKNAMES.get(nickname);
  if (expression === undefined) {
    throw invalid(`${quote(nickname)} is not known; use one of ${[...CRON_NICKNAMES.keys()].join(", ")}.`);
  }
  return expression;
}

function requireTimeZone(timeZone: string): void {
  if (TIME_ZONE_NAME.test(timeZone) && isKnownTimeZone(timeZone)) return;
  throw invalid(
    `${quote(timeZone)} is not a time zone such as Europe/Moscow; before it come exactly five fields, without seconds.`,
  );
}

function isKnownTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

function requireMatch(expression: string, timeZone: string): void {
  // croner would read a field with a colon as an ISO date.
  const badField = expression.split(" ").find((field) => !CRON_FIELD.test(field));
  if (badField !== undefined) throw invalid(`${quote(badField)} is not a field of a cron expression.`);
  let next: Date | null;
  try {
    next = nextMatch(expression, timeZone, ANY_DATE);
  } catch (cause) {
    throw invalid(`The cron expression ${quote(expression)} cannot be read: ${cronerReason(cause)}.`, cause);
  }
  if (next === null) throw invalid(`The cron expression ${quote(expression)} never matches any date.`);
}

/** croner prefixes its class name, and counts days and months from zero when it names a bad value. */
function cronerReason(cause: unknown): string {
  return String(cause)
    .replace(/^\w+: CronPattern: /, "")
    .replace(/: -?\d+$|\.$/, "");
}

function nextMatch(expression: string, timeZone: string, after: Date): Date | null {
  return new Cron(expression, { timezone: timeZone, mode: "5-part" }).nextRun(after);
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function invalid(message: string, cause?: unknown): VitrinaError {
  return new VitrinaError("SCHEDULE_INVALID", message, { cause });
}
