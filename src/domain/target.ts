/**
 * Where a pipeline writes. The text of `target_table` is parsed here, once, at the edge; nothing else looks at its
 * prefix or its dots, and the API and the writer ask the same allow-list.
 */
import { VitrinaError } from "./error-catalogue.ts";

export type Target =
  | { readonly kind: "postgres"; readonly schema: string; readonly table: string }
  | { readonly kind: "elasticsearch"; readonly index: string };

export interface TargetAllowList {
  readonly schemas: readonly string[];
  /** Exact index names, or patterns in which `*` stands for any characters. */
  readonly indexes: readonly string[];
  /** When there are any, only these of them: `analytics.orders`, `es:films`, `analytics.mart_*`. */
  readonly only?: readonly string[] | undefined;
}

const INDEX_PREFIX = "es:";
const INDEX_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** PostgreSQL cuts longer names silently, so two targets could turn out to be one table. */
const MAX_IDENTIFIER_BYTES = 63;
/** Two names of 63 quotes each, all doubled, and the dot between them: nothing longer can be valid. */
const MAX_TEXT_LENGTH = 2 * (2 * MAX_IDENTIFIER_BYTES + 2) + 1;

const NAME = '("(?:[^"]|"")*"|[^".]+)';
const QUALIFIED_NAME = new RegExp(String.raw`^${NAME}\.${NAME}$`, "u");
const UNQUOTED_NAME = /^[\p{L}_][\p{L}\p{M}\p{N}_$]*$/u;

export function parseTarget(text: string): Target {
  const trimmed = text.trim();
  return trimmed.startsWith(INDEX_PREFIX) ? parseIndex(trimmed) : parseTable(trimmed);
}

/** The canonical text, with quotes only where they are needed; `parseTarget` reads it back to the same target. */
export function formatTarget(target: Target): string {
  return target.kind === "elasticsearch"
    ? `${INDEX_PREFIX}${target.index}`
    : `${formatIdentifier(target.schema)}.${formatIdentifier(target.table)}`;
}

/** True when a name without quotes has capitals, which PostgreSQL reads in lower case. */
export function foldsTarget(text: string): boolean {
  return !text.trim().startsWith(INDEX_PREFIX) && /[A-Z]/.test(text.replace(/"(?:[^"]|"")*"/g, ""));
}

export function isAllowedTarget(target: Target, allowList: TargetAllowList): boolean {
  const { schemas, indexes, only = [] } = allowList;
  const isWithin =
    target.kind === "elasticsearch"
      ? indexes.some((pattern) => matchesPattern(target.index, pattern))
      : schemas.includes(target.schema);
  if (!isWithin || isOwn(target)) return false;
  return only.length === 0 || only.some((pattern) => matchesPattern(formatTarget(target), pattern));
}

/** What Vitrina keeps beside the targets: checkpoints, unfinished loads, the aliases of an index. */
function isOwn(target: Target): boolean {
  return target.kind === "elasticsearch"
    ? /__(?:previous$|write_|restored_)/.test(target.index)
    : target.table.startsWith("_vitrina");
}

export function requireAllowedTarget(text: string, allowList: TargetAllowList): Target {
  const target = parseTarget(text);
  if (isOwn(target)) {
    throw notAllowed(`${formatTarget(target)} is not an allowed target: Vitrina keeps its own records by such names.`);
  }
  if (isAllowedTarget(target, allowList)) return target;
  throw notAllowed(`${formatTarget(target)} is not an allowed target; allowed are: ${describe(allowList)}.`);
}

function parseIndex(text: string): Target {
  const index = text.slice(INDEX_PREFIX.length);
  if (!INDEX_NAME.test(index)) {
    throw notAllowed(
      `${quote(index)} is not an index name: use 1 to 63 lower-case letters, digits, _ and -, beginning with a letter or digit.`,
    );
  }
  return { kind: "elasticsearch", index };
}

function parseTable(text: string): Target {
  if (text.length > MAX_TEXT_LENGTH) {
    throw notAllowed(`The target is too long: schema and table have at most ${MAX_IDENTIFIER_BYTES} bytes each.`);
  }
  const [, schema, table] = QUALIFIED_NAME.exec(text) ?? [];
  if (schema === undefined || table === undefined) {
    throw notAllowed(
      `${quote(text)} does not name a target: write <schema>.<table>, e.g. analytics.films, or es:<index>.`,
    );
  }
  return { kind: "postgres", schema: parseIdentifier(schema), table: parseIdentifier(table) };
}

function parseIdentifier(text: string): string {
  const name = text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : foldUnquoted(text);
  if (name === "") throw notAllowed("A schema or table name is empty.");
  // A lone surrogate has no UTF-8 form, so PostgreSQL could not be told this name.
  if (/\0|\p{Surrogate}/u.test(name)) {
    throw notAllowed(`The name ${quote(name)} contains a character that PostgreSQL cannot store.`);
  }
  if (new TextEncoder().encode(name).length > MAX_IDENTIFIER_BYTES) {
    throw notAllowed(`The name ${quote(name)} is too long: PostgreSQL keeps ${MAX_IDENTIFIER_BYTES} bytes of a name.`);
  }
  return name;
}

/** PostgreSQL folds only ASCII letters in a UTF-8 database; `toLowerCase` on the whole would name another table. */
function foldUnquoted(text: string): string {
  if (!UNQUOTED_NAME.test(text)) {
    throw notAllowed(`Put the name ${quote(text)} into double quotes, or use only letters, digits, _ and $.`);
  }
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function formatIdentifier(name: string): string {
  const needsQuotes = !UNQUOTED_NAME.test(name) || /[A-Z]/.test(name);
  return needsQuotes ? `"${name.replaceAll('"', '""')}"` : name;
}

function matchesPattern(name: string, pattern: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(name);
}

function describe(allowList: TargetAllowList): string {
  if (allowList.only !== undefined && allowList.only.length > 0) return allowList.only.join(", ");
  const tables = allowList.schemas.map((schema) => `${formatIdentifier(schema)}.<table>`);
  const indexes = allowList.indexes.map((index) => `${INDEX_PREFIX}${index}`);
  return [...tables, ...indexes].join(", ") || "none";
}

/** Text of a stranger in a sentence of ours: escaped, and not longer than anybody wants to read. */
function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function notAllowed(message: string): VitrinaError {
  return new VitrinaError("TARGET_NOT_ALLOWED", message);
}
