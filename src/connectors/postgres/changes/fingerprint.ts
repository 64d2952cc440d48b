import { createHash } from "node:crypto";
import type { FollowPosition } from "../../../domain/follow.ts";
import type { FollowPlan, ImagesOf } from "../../../sql-analysis/follow-plan.ts";
import type { FollowRequest } from "../../follower.ts";
import type { ColumnFacts, ShapeFacts, TableFacts, TablePart, ViewFacts } from "./recording.ts";

/** What must be as it was for the recorded changes to be all there are. A name for each part, so that people are told which. */
export type Fingerprint = FollowPosition["fingerprint"];

/** Null: the server does not reveal it. */
export interface ServerFacts {
  readonly system: string | null;
  readonly timeline: string | null;
  readonly database: string | null;
  readonly start: string | undefined;
}

/** `more`: what the log of changes adds, and the surroundings of the query. */
export function fingerprintOf(
  facts: TableFacts,
  more: Fingerprint,
  server: ServerFacts,
  definition: string,
): Fingerprint {
  return {
    ...serverPrints(server),
    query: definition,
    ...viewPrints(facts.views),
    ...tablePrints(facts.parts),
    ...columnPrints(facts.columns),
    ...shapePrints(facts.shapes),
    ...more,
  };
}

export function serverPrints({ system, timeline, database, start }: ServerFacts): Fingerprint {
  const prints = { server: `${system} ${database}`, timeline: `${timeline}` };
  return start === undefined ? prints : { ...prints, [START]: start };
}

/** What the watcher compares as well. */
export function tablePrints(parts: readonly TablePart[]): Fingerprint {
  const prints: Record<string, string> = {};
  for (const [relation, all] of byRelation(parts)) {
    const root = all.find(({ isRoot }) => isRoot);
    prints[`table ${relation}`] = root?.oid ?? "missing";
    prints[`parts of ${relation}`] = all
      .filter(({ isRoot }) => !isRoot)
      .map(({ oid, parents }) => `${oid} of ${parents}`)
      .join(", ");
    const computed = all.filter((part) => part.computed !== null);
    if (computed.length > 0)
      prints[`computed columns of ${relation}`] = computed.map((part) => `${part.oid} ${part.computed}`).join(", ");
    prints[`storage of ${relation}`] = all.map(({ oid, storage }) => [oid, storage].join(" in ")).join(", ");
  }
  return prints;
}

/** The same for those whose changes triggers record. */
export function triggerPrints(parts: readonly TablePart[]): Fingerprint {
  const prints: Record<string, string> = {};
  for (const [relation, all] of byRelation(parts)) {
    prints[`trigger of ${relation}`] = all
      .flatMap(({ oid, rowTrigger }) => (rowTrigger === null ? `${oid} none` : `${oid} ${triggerPrint(rowTrigger)}`))
      .join(", ");
  }
  return prints;
}

const triggerPrint = ({ oid, enabled, xmin }: { oid: string; enabled: string; xmin: string }): string =>
  [oid, enabled, xmin].join(" ");

export function viewPrints(views: readonly ViewFacts[]): Fingerprint {
  return Object.fromEntries(views.map(({ name, rule }) => [`view ${name}`, rule]));
}

const SHAPE = "shape of ";
/** For the watcher as well: what a start means is judged apart. */
const START = "start";

/**
 * For the watcher alone. Columns that the query does not read are part of it, so a round draws no conclusion from it: when it
 * has differed, the next position has the new one.
 */
export function shapePrints(shapes: readonly ShapeFacts[]): Fingerprint {
  return Object.fromEntries(shapes.map(({ relation, shape }) => [`${SHAPE}${relation}`, shape]));
}

function columnPrints(columns: readonly ColumnFacts[]): Fingerprint {
  const prints: Record<string, string> = {};
  for (const [relation, all] of byRelation(columns)) {
    prints[`columns of ${relation}`] = all
      .map(({ name, number, type, collation, makeup }) => [name, number, type, collation, makeup].join(" "))
      .join(", ");
  }
  return prints;
}

export function byRelation<T extends { readonly relation: string }>(facts: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const fact of facts) groups.set(fact.relation, [...(groups.get(fact.relation) ?? []), fact]);
  return groups;
}

const ANY_IMAGES: ImagesOf = () => ({ changed: "(changed)", old: "(old)" });

/** Of the query and of what was derived from it. */
export function definitionPrint({ query, key, columns }: FollowRequest, plan: FollowPlan): string {
  const tables = plan.tables.map(({ change, ...table }) => ({
    ...table,
    change: change.kind === "keys" ? change.statement(ANY_IMAGES) : change.kind,
  }));
  return createHash("md5")
    .update(JSON.stringify([query, key, columns, tables]))
    .digest("hex");
}

/** In this order: what comes first explains what comes later. */
const SENTENCES: readonly (readonly [start: string, sentence: (relation: string) => string])[] = [
  ["server", () => "The source is another server or database than before."],
  ["timeline", () => "The source was restored, or a standby took its place."],
  ["slot", () => "Changes are taken from elsewhere than before: from a slot instead of a table, or from another one."],
  ["change table", () => "The change table was removed and installed again."],
  ["publication", () => "The publication of the slot was altered, or recreated."],
  ["type ", (type) => `The type ${type} was altered.`],
  ["text search", () => "A configuration or a dictionary of text search was altered."],
  ["setting ", (setting) => `The setting ${setting} was altered for the database or the reader.`],
  ["value of ", (setting) => `The setting ${setting} was altered.`],
  ["query", () => "The query, its key, or what is derived from it is another than before."],
  ["view ", (view) => `The view ${view} was altered.`],
  ["table ", (table) => `${table} was dropped and made again.`],
  ["parts of ", (table) => `A partition of ${table} was attached or removed.`],
  ["computed columns of ", (table) => `${table} computes a column otherwise than before.`],
  ["columns of ", (table) => `Columns of ${table} were altered.`],
  ["storage of ", (table) => `${table} was truncated or rewritten.`],
  ["published ", (table) => `${table} was taken out of the publication, or put into it.`],
  ["identity of ", (table) => `${table} has another replica identity than before.`],
  ["trigger of ", (table) => `The trigger on ${table} was switched off or on, or recreated.`],
];

/** One sentence about the first difference; undefined: there is none. */
export function differenceBetween(before: Fingerprint, now: Fingerprint): string | undefined {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const different = names.filter((name) => !name.startsWith(SHAPE) && name !== START && before[name] !== now[name]);
  for (const [start, sentence] of SENTENCES) {
    const found = different.find((name) => (start.endsWith(" ") ? name.startsWith(start) : name === start));
    if (found !== undefined) return sentence(found.slice(start.length));
  }
  return different.length === 0 ? undefined : "The source is not as it was.";
}
