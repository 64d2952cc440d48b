import { OF_OWN_MAKING, refusedByName } from "./functions.ts";
import { shown } from "./refusal.ts";
import { type Fields, isObject, namesIn, textOf } from "./tree.ts";

/** What a node of a query may be, beyond its kind: which tables, functions, types and operators it names. */

export interface Surroundings {
  readonly allowedSchemas: readonly string[];
  readonly scope: Scope | undefined;
}

/** The common table expressions that can be named here: those of the statement, and those of the statements around it. */
export interface Scope {
  readonly names: ReadonlySet<string>;
  readonly outer: Scope | undefined;
}

function isInScope(name: string, scope: Scope | undefined): boolean {
  return scope !== undefined && (scope.names.has(name) || isInScope(name, scope.outer));
}

/** Returns what is wrong with the node. */
type NodeRule = (node: Fields, surroundings: Surroundings) => string | undefined;

const RULES: Readonly<Record<string, NodeRule>> = {
  RangeVar: relationRule,
  ColumnRef: columnRule,
  FuncCall: functionRule,
  TypeName: typeRule,
  A_Expr: ({ name }) => operatorRule(namesIn(name)),
  SubLink: ({ operName }) => operatorRule(namesIn(operName)),
  SortBy: ({ useOp }) => operatorRule(namesIn(useOp)),
  CollateClause: collationRule,
  RangeTableSample: samplingRule,
  A_Indirection: fieldSelectionRule,
};

export function whatIsWrong(kind: string, node: Fields, surroundings: Surroundings): string | undefined {
  return Object.hasOwn(RULES, kind) ? RULES[kind]?.(node, surroundings) : undefined;
}

function relationRule({ catalogname, schemaname, relname }: Fields, { allowedSchemas, scope }: Surroundings) {
  const name = textOf(relname);
  const schema = textOf(schemaname);
  const allowed = allowedSchemas.join(", ");
  if (catalogname !== undefined) return `${shown(textOf(catalogname), schema, name)} names a database`;
  if (schemaname === undefined) {
    if (isInScope(name, scope)) return undefined;
    return `the table ${shown(name)} has no schema; write every table with its schema, one of ${allowed}`;
  }
  if (allowedSchemas.includes(schema)) return undefined;
  return `the table ${shown(schema, name)} is outside the allowed schemas (${allowed})`;
}

/** `content.film.title` names a schema, `vitrina.content.film.title` also a database; a star comes as an empty name. */
function columnRule({ fields }: Fields, { allowedSchemas }: Surroundings) {
  const names = namesIn(fields);
  if (names.length < 3) return undefined;
  if (names.length > 3) return `${shownColumn(names)} names a database`;
  if (allowedSchemas.includes(names[0] ?? "")) return undefined;
  return `${shownColumn(names)} is outside the allowed schemas (${allowedSchemas.join(", ")})`;
}

function shownColumn(names: readonly string[]): string {
  return `the column ${shown(...names.slice(0, 6).filter((name) => name !== ""))}${names.at(-1) === "" ? ".*" : ""}`;
}

/** Names without a schema are found in pg_catalog: no session of a reader searches anywhere else. */
function isOfPostgres(names: readonly string[]): boolean {
  return names.length <= 1 || (names.length === 2 && names[0] === "pg_catalog");
}

function functionRule({ funcname }: Fields) {
  const names = namesIn(funcname);
  const why = isOfPostgres(names) ? refusedByName(names.at(-1) ?? "") : OF_OWN_MAKING;
  return why === undefined ? undefined : `the function ${shown(...names)} ${why}`;
}

function typeRule({ names, pct_type }: Fields, { allowedSchemas }: Surroundings) {
  const parts = namesIn(names);
  const why = pct_type === true ? "is taken from a column" : refusedType(parts, allowedSchemas);
  return why === undefined ? undefined : `the type ${shown(...parts)} ${why}`;
}

/** Texts cast to these name objects of the database, or are parsed by libraries, or belong to PostgreSQL's internals. */
const REFUSED_TYPES =
  /^(reg(?!config$|dictionary$)\w+|oid|oidvector|xid8?|cid|xml|refcursor|cstring|internal|aclitem|pg_\w+)$/;
const ALSO_REFUSED_TYPES =
  /^(txid_snapshot|information_schema|any\w*|trigger|event_trigger|\w+_handler|unknown|void|opaque)$/;

/** Why a type may not be used, by its name in the query; `undefined` if it is an ordinary one. */
function refusedType(names: readonly string[], allowedSchemas: readonly string[]): string | undefined {
  const [first = "", second] = names;
  if (names.length > 2) return "names a database";
  const schema = second === undefined ? "pg_catalog" : first;
  if (schema !== "pg_catalog") {
    return allowedSchemas.includes(schema)
      ? undefined
      : `is outside the allowed schemas (${allowedSchemas.join(", ")})`;
  }
  const name = second ?? first;
  return REFUSED_TYPES.test(name) || ALSO_REFUSED_TYPES.test(name) ? "belongs to PostgreSQL's internals" : undefined;
}

function operatorRule(names: readonly string[]) {
  if (isOfPostgres(names)) return undefined;
  return `the operator ${shown(...names)} is not one of PostgreSQL's own operators`;
}

function collationRule({ collname }: Fields, { allowedSchemas }: Surroundings) {
  const names = namesIn(collname);
  if (isOfPostgres(names) || (names.length === 2 && allowedSchemas.includes(names[0] ?? ""))) return undefined;
  return `the collation ${shown(...names)} is outside the allowed schemas (${allowedSchemas.join(", ")})`;
}

function samplingRule({ method }: Fields) {
  const names = namesIn(method);
  if (isOfPostgres(names) && ["system", "bernoulli"].includes(names.at(-1) ?? "")) return undefined;
  return `the sampling method ${shown(...names)} is neither system nor bernoulli`;
}

const NO_ROWS = new Set([
  "A_Const",
  "A_Expr",
  "A_ArrayExpr",
  "BoolExpr",
  "BooleanTest",
  "NullTest",
  "SQLValueFunction",
  "CollateClause",
]);

/** `(1::float8).pg_sleep` calls a function. The audit knows which fields are functions; here only the plain cases. */
function fieldSelectionRule({ arg, indirection }: Fields) {
  const selectsField = Array.isArray(indirection) && indirection.some((step) => isObject(step) && "String" in step);
  const [[kind, inner] = ["", undefined]] = isObject(arg) ? Object.entries(arg) : [];
  const isRow = !NO_ROWS.has(kind) && !(kind === "TypeCast" && isCastToPostgresType(inner));
  if (!selectsField || isRow) return undefined;
  return "a field is selected from a value that is not a row, which would call a function";
}

function isCastToPostgresType(cast: unknown): boolean {
  const type = isObject(cast) ? cast["typeName"] : undefined;
  return isObject(type) && isOfPostgres(namesIn(type["names"]));
}
