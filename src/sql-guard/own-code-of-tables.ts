import type { SqlSession } from "../domain/sql-session.ts";
import { type CatalogueRow, IS_ANY_OWN, OWN_CODE_OF_TABLES } from "./audit-queries.ts";
import { OF_OWN_MAKING } from "./functions.ts";
import { nodesIn } from "./mentions.ts";
import type { GuardFinding } from "./refusal.ts";
import { type Fields, isObject, namesIn, type Statement, statementsOf } from "./tree.ts";

/**
 * Code that comes with a table: the planner evaluates what its indexes and constraints call with constants, with the
 * rights of the reader. Only calls with a column are safe: they need a row, and reading does not evaluate them for one.
 */

export async function ownCodeOfTables(
  session: SqlSession,
  relations: readonly unknown[],
): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(OWN_CODE_OF_TABLES, [relations]);
  const findings: GuardFinding[] = [];
  for (const row of rows as CatalogueRow[]) {
    if (!(await mayRun(session, row))) continue;
    const { relation, part, function: name } = row;
    findings.push({ what: `the function ${name}, which ${part} of ${relation} calls, ${OF_OWN_MAKING}` });
  }
  return findings;
}

async function mayRun(session: SqlSession, { expression, schema, name, body }: CatalogueRow): Promise<boolean> {
  const calls = callsIn(await statementOf(`SELECT ${expression}`))?.filter(
    ({ names }) => names.length === 2 && names[0] === schema && names[1] === name,
  );
  // Called by an operator or a cast, or in a way that is not understood.
  if (calls === undefined || calls.length === 0 || !calls.every(({ waitsForRow }) => waitsForRow)) return true;
  return body != null && (await callsOthers(session, body));
}

/** The body of such a function is inlined, and there its own calls may have constant arguments after all. */
async function callsOthers(session: SqlSession, body: string): Promise<boolean> {
  const statement = await statementOf(body.replace(/^\s*RETURN\s/i, "SELECT "));
  const calls = callsIn(statement);
  if (statement === undefined || calls === undefined || usesOtherNames(statement)) return true;
  const qualified = calls.map(({ names }) => names).filter((names) => names.length > 1);
  const { rows } = await session.query(IS_ANY_OWN, [
    qualified.map((names) => names.at(-2)),
    qualified.map((names) => names.at(-1)),
  ]);
  return (rows[0] as CatalogueRow)["own"] === "true";
}

async function statementOf(text: string): Promise<Statement | undefined> {
  const statements = await statementsOf(text);
  return Array.isArray(statements) && statements.length === 1 ? (statements[0] as Statement) : undefined;
}

interface Call {
  readonly names: readonly string[];
  /** One of its arguments depends on a row. */
  readonly waitsForRow: boolean;
}

function callsIn(statement: Statement | undefined): readonly Call[] | undefined {
  if (statement === undefined) return undefined;
  return ofKind(statement, "FuncCall").map(({ funcname, args }) => ({
    names: namesIn(funcname),
    waitsForRow: Array.isArray(args) && args.some(variesWithRow),
  }));
}

/**
 * A column, or what PostgreSQL's own functions and operators compute from one and constants other than NULL. Anything
 * else may turn out to be constant: a coalesce that never gets to its column, a function that returns NULL for NULL.
 */
function variesWithRow(node: unknown): boolean {
  if (!isObject(node)) return false;
  if ("ColumnRef" in node) return true;
  const [kind, fields] = Object.entries(node)[0] ?? [];
  if (!isObject(fields)) return false;
  if (kind === "TypeCast") return variesWithRow(fields["arg"]);
  const inputs = inputsOf(kind, fields);
  return inputs.some(variesWithRow) && inputs.every((input) => variesWithRow(input) || isConstant(input));
}

function inputsOf(
  kind: string | undefined,
  { funcname, args, name, lexpr, rexpr, kind: form }: Fields,
): readonly unknown[] {
  if (kind === "FuncCall" && isOfPostgres(namesIn(funcname))) return Array.isArray(args) ? args : [];
  if (kind === "A_Expr" && form === "AEXPR_OP" && isOfPostgres(namesIn(name))) {
    return [lexpr, rexpr].filter((side) => side !== undefined);
  }
  return [];
}

function isOfPostgres(names: readonly string[]): boolean {
  return names.length === 1 || names[0] === "pg_catalog";
}

function isConstant(node: unknown): boolean {
  if (!isObject(node)) return false;
  const { A_Const: constant, TypeCast: cast } = node;
  return isObject(cast) ? isConstant(cast["arg"]) : isObject(constant) && constant["isnull"] !== true;
}

/** Operators and types with a schema, behind which there may be functions as well. */
function usesOtherNames(statement: Statement): boolean {
  const operators = ofKind(statement, "A_Expr").map(({ name }) => namesIn(name));
  const types = [...ofKind(statement, "TypeName"), ...ofKind(statement, "typeName")].map(({ names }) => namesIn(names));
  return [...operators, ...types].some(([first, second]) => second !== undefined && first !== "pg_catalog");
}

function ofKind({ node }: Statement, wanted: string): readonly Fields[] {
  return [...nodesIn(node)].flatMap(({ kind, fields }) => (kind === wanted ? [fields] : []));
}
