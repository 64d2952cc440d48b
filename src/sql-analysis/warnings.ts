import { shown } from "../sql-guard/refusal.ts";
import type { Fields } from "../sql-guard/tree.ts";
import { type Expression, leavesOf, type QueryBlock, soleColumn } from "./model.ts";
import type { FactColumn, QueryFacts } from "./query-facts.ts";
import { LIMITED } from "./sentences.ts";
import { typeOfColumn } from "./types.ts";

/** Results that the rows do not determine: computing them again may give another answer that is just as right. */

interface AggregateCall {
  readonly name: string;
  readonly call: Fields;
  readonly args: readonly Expression[];
}

const IN_ORDER =
  /^(JSON_ARRAYAGG|array_agg|string_agg|jsonb?_(object_)?agg(_strict|_unique|_unique_strict)?|xmlagg|any_value)$/;
const BY_ORDER = /^(row_number|ntile|lag|lead|first_value|last_value|nth_value)$/;
const OF_FLOATS = /^(sum|avg|stddev|stddev_pop|stddev_samp|variance|var_pop|var_samp|regr_\w+|corr|covar_\w+)$/;

export function warningsAbout(
  aggregates: readonly AggregateCall[],
  calls: readonly string[],
  hasFrameOfRows: boolean,
  block: QueryBlock,
): readonly string[] {
  const warnings: string[] = [];
  for (const { name, call, args } of aggregates) {
    if (IN_ORDER.test(name) && call["agg_order"] === undefined) {
      warnings.push(`${name}() has no ORDER BY: the order of its values may differ whenever it is computed.`);
    }
    if (OF_FLOATS.test(name) && args.some(isFloat)) {
      warnings.push(`${name}() adds up floating-point numbers: its last digits depend on the order of the rows.`);
    }
  }
  if (choosesByOrder(block) || hasFrameOfRows || calls.some((name) => BY_ORDER.test(name))) {
    const what = "DISTINCT ON, LIMIT, row_number(), lag() and the like, and frames of ROWS";
    warnings.push(`${what} choose by chance between rows that ORDER BY does not tell apart: make it unique.`);
  }
  return [...new Set(warnings)];
}

function isFloat(expression: Expression): boolean {
  const column = soleColumn(expression);
  return column !== undefined && /^(real|double precision)$/.test(typeOfColumn(column)?.type ?? "");
}

function choosesByOrder(block: QueryBlock): boolean {
  if (block.kind === "set") return block.notLocal === LIMITED || block.branches.some(choosesByOrder);
  const inner = [
    ...leavesOf(block.from).flatMap((leaf) => (leaf.kind === "query" ? [leaf.block] : [])),
    ...block.sublinks.map((sublink) => sublink.block),
  ];
  const isOwn = block.partitions.some(({ isDistinct }) => isDistinct) || block.notLocal === LIMITED;
  return isOwn || inner.some(choosesByOrder);
}

const TIME = /^(now|transaction_timestamp|statement_timestamp|clock_timestamp|timeofday)$/;
const TIME_VALUE = /^(CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)$/;
const SESSION_VALUE = /^(CURRENT_ROLE|CURRENT_USER|USER|SESSION_USER|CURRENT_CATALOG|CURRENT_SCHEMA)$/;
const SESSION = /^(current_setting|current_schemas?|current_database|session_user|getpgusername|pg_backend_pid)$/;

/** Why the rows of the query change without any row of a table changing. */
export function changesByItself(
  calls: readonly { readonly name: string; readonly args: number }[],
  { volatile, timeTexts }: Pick<QueryFacts, "volatile" | "timeTexts">,
): readonly string[] {
  const reasons = calls.flatMap(({ name, args }) => {
    const label = /^[A-Z_]+$/.test(name) ? name : `${shown(name)}()`;
    if (TIME.test(name) || TIME_VALUE.test(name) || (name === "age" && args === 1)) {
      return [
        `The query asks for the time (${label}): rows change without any table changing. Only a sweep sees that.`,
      ];
    }
    if (SESSION.test(name) || SESSION_VALUE.test(name)) {
      return [`The query asks who reads it (${label}): its rows do not depend on tables alone.`];
    }
    return [];
  });
  const ofOthers = volatile
    .filter((name) => !calls.some((call) => call.name === name && TIME.test(name)))
    .map((name) => `The query calls ${shown(name)}(), which may answer differently every time.`);
  return [...new Set([...reasons, ...timeTexts.map((text) => asksForTime(`'${text}'`)), ...ofOthers])];
}

/** Data that says 'today' is rare, and dates in JSON are not: so this is said, and not refused. */
export function warningsAboutTexts({ timesFromTexts }: Pick<QueryFacts, "timesFromTexts">): readonly string[] {
  return timesFromTexts.map(
    (type) =>
      `The query casts texts to ${type}: one that says 'today' is another day tomorrow. Only a sweep sees that; to_date() and to_timestamp() take no such words.`,
  );
}

function asksForTime(how: string): string {
  return `The query asks for the time (${how}): rows change without any table changing. Only a sweep sees that.`;
}

/** Of a key whose equal values may be written differently: 1.0 and 1.00. A fixed scale makes them the same. */
export function warningAboutKey({ name, type, isEqualImage }: FactColumn): readonly string[] {
  if (isEqualImage || /^(numeric|character)\(/.test(type)) return [];
  const what = `Values of ${shown(name)} (${type}) can be equal without being the same text`;
  return [`${what}: a target that knows keys by their text, such as a search index, may keep both.`];
}
