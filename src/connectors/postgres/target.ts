import { VitrinaError } from "../../domain/error-catalogue.ts";
import { quoted } from "../../domain/quoted.ts";
import { notAllowed } from "../targets.ts";
import { TABLE_ERRORS } from "./errors.ts";

export interface TableTarget {
  readonly kind: "postgres";
  readonly schema: string;
  readonly table: string;
}

/** PostgreSQL cuts longer names silently, so two targets could turn out to be one table. */
const MAX_IDENTIFIER_BYTES = 63;
/** Two names of 63 quotes each, all doubled and quoted, with a dot between them: nothing longer can be valid. */
const MAX_TEXT_LENGTH = 2 * (2 * MAX_IDENTIFIER_BYTES + 2) + 1;

const NAME = '("(?:[^"]|"")*"|[^".]+)';
const QUALIFIED_NAME = new RegExp(String.raw`^${NAME}\.${NAME}$`, "u");
const UNQUOTED_NAME = /^[\p{L}_][\p{L}\p{M}\p{N}_$]*$/u;

export function parseTable(text: string): TableTarget | undefined {
  if (text.length > MAX_TEXT_LENGTH) {
    throw notAllowed(`The target is too long: schema and table have at most ${MAX_IDENTIFIER_BYTES} bytes each.`);
  }
  const [, schema, table] = QUALIFIED_NAME.exec(text) ?? [];
  if (schema === undefined || table === undefined) return undefined;
  return { kind: "postgres", schema: parseIdentifier(schema), table: parseIdentifier(table) };
}

/** With quotes only where they are needed. */
export function formatTable({ schema, table }: TableTarget): string {
  return `${formatIdentifier(schema)}.${formatIdentifier(table)}`;
}

/** Checkpoints and unfinished loads. */
export function isOwnTable({ table }: TableTarget): boolean {
  return table.startsWith("_vitrina");
}

/** A name without quotes that has capitals is read in lower case. */
export function foldedName(text: string): readonly VitrinaError[] {
  const target = /[A-Z]/.test(text.replace(/"(?:[^"]|"")*"/g, "")) ? parseTable(text) : undefined;
  if (target === undefined) return [];
  const message = `${text} is read as ${formatTable(target)}, as PostgreSQL does with names without quotes.`;
  return [new VitrinaError(TABLE_ERRORS.TARGET_NAME_FOLDED, message)];
}

function parseIdentifier(text: string): string {
  const name = text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : foldUnquoted(text);
  if (name === "") throw notAllowed("A schema or table name is empty.");
  // A lone surrogate has no UTF-8 form, so PostgreSQL could not be told this name.
  if (/\0|\p{Surrogate}/u.test(name)) {
    throw notAllowed(`The name ${quoted(name)} contains a character that PostgreSQL cannot store.`);
  }
  if (new TextEncoder().encode(name).length > MAX_IDENTIFIER_BYTES) {
    throw notAllowed(`The name ${quoted(name)} is too long: PostgreSQL keeps ${MAX_IDENTIFIER_BYTES} bytes of a name.`);
  }
  return name;
}

/** PostgreSQL folds only ASCII letters in a UTF-8 database; `toLowerCase` on the whole would name another table. */
function foldUnquoted(text: string): string {
  if (!UNQUOTED_NAME.test(text)) {
    throw notAllowed(`Put the name ${quoted(text)} into double quotes, or use only letters, digits, _ and $.`);
  }
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

export function formatIdentifier(name: string): string {
  const needsQuotes = !UNQUOTED_NAME.test(name) || /[A-Z]/.test(name);
  return needsQuotes ? `"${name.replaceAll('"', '""')}"` : name;
}
