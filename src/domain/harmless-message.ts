/**
 * The part of a database error that everybody may read. Messages can quote values of rows, and those raised by functions
 * and triggers can hold anything. So only messages of a known harmless form are shown; of the others, only the kind of
 * error, and the names that the server sends separately from its message.
 */

export interface ServerError {
  readonly message: string;
  /** Its SQLSTATE. */
  readonly code: string;
  /** Given when the error is about the text of the statement itself. */
  readonly position?: string | undefined;
  readonly where?: string | undefined;
  readonly routine?: string | undefined;
  readonly table?: string | undefined;
  readonly column?: string | undefined;
  readonly dataType?: string | undefined;
  readonly constraint?: string | undefined;
}

/** Classes whose messages are about sessions, roles and resources. */
const OPERATIONAL = /^(?:08|0A|25|26|28|2B|2D|3D|3F|40|53|54|55|57|58|42501)/;

const NAME = '"[^"]*"';
const TYPE = String.raw`[\w ]+(?:\(\d+(?:,-?\d+)?\))?[\w ]*(?:\[\])*`;

/** Messages with names of tables, columns and constraints. */
const WITH_NAMES = [
  `null value in column ${NAME} of relation ${NAME} violates not-null constraint`,
  `duplicate key value violates unique constraint ${NAME}`,
  `insert or update on table ${NAME} violates foreign key constraint ${NAME}`,
  `update or delete on table ${NAME} violates foreign key constraint ${NAME} on table ${NAME}`,
  `new row for relation ${NAME} violates check constraint ${NAME}`,
  `value for domain .{1,130} violates check constraint ${NAME}`,
  "domain .{1,130} does not allow null values",
  `conflicting key value violates exclusion constraint ${NAME}`,
  `no partition of relation ${NAME} found for row`,
  `nextval: reached (?:maximum|minimum) value of sequence ${NAME} \\(-?\\d+\\)`,
].map((shape) => new RegExp(`^${shape}$`));

/** Messages that quote at most one value, which is removed first. */
const WITHOUT_VALUES = [
  `invalid input syntax for type ${TYPE}(?:: "…")?`,
  `value "…" is out of range for type ${TYPE}`,
  'invalid input value for enum (?:[\\w.]+: )?"…"',
  `value too long for type ${TYPE}`,
  `${TYPE} out of range(?:: "…")?`,
  'date/time field value out of range: "…"',
  'interval field value out of range: "…"',
  'time zone "…" not recognized',
  'malformed (?:array|record|range|multirange) literal: "…"',
  'invalid (?:byte sequence for encoding|hexadecimal digit|regular expression|name syntax|cidr value|JSON text)(?: "…")?',
  'character with byte sequence in encoding "…" has no equivalent in encoding "…"',
  'syntax error in ts(?:query|vector): "…"',
  'no operand in tsquery: "…"',
  '(?:relation|type|function|schema|operator|role|text search configuration|collation|column) "…" does not exist',
  "division by zero",
  "numeric field overflow",
  "cannot convert NaN to \\w+",
  "cannot convert infinity to \\w+",
  "unsupported Unicode escape sequence",
  "invalid XML (?:content|document)",
  "negative substring length not allowed",
  "bit string length \\d+ does not match type bit\\(\\d+\\)",
  "wrong number of array subscripts",
  "zero-length delimited identifier",
].map((shape) => new RegExp(`^(?:${shape})$`));

/** By the first letters of the SQLSTATE, the longest first. */
const KINDS: readonly (readonly [state: string, words: string])[] = [
  ["P0001", "a function or trigger raised an error"],
  ["22", "a value is not acceptable"],
  ["23", "a constraint is violated"],
  ["42", "the statement is not acceptable for this value, or names something that is not there"],
  ["21", "the statement returns more rows than allowed"],
  ["P0", "a function failed"],
  ["XX", "the server had an internal error"],
];

export function harmlessMessage(error: ServerError): string {
  return knownMessage(error) ?? describeKind(error);
}

/** Whoever raises an error in a function chooses its state and its words. */
function isRaisedByHand({ routine, where = "" }: ServerError): boolean {
  return routine === "exec_stmt_raise" || /^PL\/pgSQL [^\n]* at (?:RAISE|ASSERT)|^PL\/(?!pgSQL )/.test(where);
}

function knownMessage(error: ServerError): string | undefined {
  const { message, code, position } = error;
  if (isRaisedByHand(error)) return undefined;
  if (OPERATIONAL.test(code)) return message;
  if (WITH_NAMES.some((shape) => shape.test(message))) return message;
  // Such a statement was never executed, so it is the text of the query that is quoted.
  if (position !== undefined && !code.startsWith("22")) return message;
  const masked = withoutQuotes(message);
  return WITHOUT_VALUES.some((shape) => shape.test(masked)) ? masked : undefined;
}

function withoutQuotes(message: string): string {
  return message
    .replace(/^(invalid byte sequence for encoding "[^"]*"): .*$/s, "$1")
    .replace(
      /^(character with byte sequence) .* (in encoding) "[^"]*" (has no equivalent in encoding) "[^"]*"$/s,
      '$1 $2 "…" $3 "…"',
    )
    .replace(/^(invalid regular expression): .*$/s, "$1")
    .replace(/^(?!character with byte sequence)([^"]*)".*"/s, '$1"…"');
}

function describeKind({ code, where, table, column, dataType, constraint }: ServerError): string {
  const words = KINDS.find(([state]) => code.startsWith(state))?.[1] ?? "the database refused the statement";
  const names = Object.entries({ table, column, type: dataType, constraint }).flatMap(([kind, name]) =>
    name === undefined ? [] : [`${kind} "${name}"`],
  );
  const place = /^PL\/pgSQL function ("?[\w$.]+"?)\([^)]*\) line (\d+) at RAISE/.exec(where ?? "");
  if (place !== null) names.push(`in ${place[1]}, line ${place[2]}`);
  return names.length === 0 ? words : `${words} (${names.join(", ")})`;
}
