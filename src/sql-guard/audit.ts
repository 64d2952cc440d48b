import { VitrinaError } from "../domain/error-catalogue.ts";
import { harmlessMessage, type ServerError } from "../domain/harmless-message.ts";
import { READER_LACKS_RIGHT } from "../domain/reader-rights.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import type { TextPlace } from "../domain/text-place.ts";
import {
  type CatalogueRow,
  FUNCTIONS_BY_NAME,
  FUNCTIONS_CALLED,
  MAKES_ROWS,
  OTHER_OBJECTS,
  OWN_CODE_OF_TYPES,
  RELATIONS_REACHED,
  SIZES_OF_RULES,
} from "./audit-queries.ts";
import { type FunctionFacts, refusedByFacts, refusedByName } from "./functions.ts";
import { type Mentions, mentionsIn } from "./mentions.ts";
import { ownCodeOfTables } from "./own-code-of-tables.ts";
import { byteOffset, type GuardFinding, placeOf, shown, shownPlace } from "./refusal.ts";
import { type Statement, statementsOf } from "./tree.ts";

/**
 * Asks the source how it resolves a query. CREATE VIEW analyses a query without running any of it, not even the
 * constant parts that EXPLAIN computes; the rule of the view then holds every object that the query was resolved to.
 * Views are followed to their ends, because a view reads with the rights of its owner.
 */

/** Nothing here takes long, but somebody who alters a table may have locked it. */
const AUDIT_TIMEOUT_MS = 30_000;

const VIEW = "vitrina_audit";
const BEFORE_QUERY = `CREATE TEMPORARY VIEW ${VIEW} AS SELECT 1 AS one FROM (\n`;

export async function audit(
  session: SqlSession,
  query: string,
  allowedSchemas: readonly string[],
): Promise<readonly GuardFinding[]> {
  const statement = await onlyStatement(query);
  const canMakeViews = await requireAuditable(session);
  await session.query(`BEGIN ISOLATION LEVEL READ COMMITTED ${canMakeViews ? "READ WRITE" : "READ ONLY"}`);
  try {
    // Settings of the session must not change what names and quotes in the query mean. Temporary objects come last;
    // if pg_temp were not listed, they would come first.
    await session.query(
      `SELECT set_config('search_path', 'pg_catalog, pg_temp', true), set_config('standard_conforming_strings', 'on', true),
              set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`,
      [String(AUDIT_TIMEOUT_MS)],
    );
    const mentions = mentionsIn(statement.node);
    const relations = await mentionedRelations(session, mentions);
    // First: analysing a query converts its literals to their types, which checks domains.
    const ownCode = [
      ...(await ownCodeFindings(session, relations, mentions)),
      ...(await ownCodeOfTables(session, relations)),
    ];
    if (ownCode.length > 0) return ownCode;
    return canMakeViews
      ? await auditView(session, query, statement, allowedSchemas)
      : await auditMentions(session, relations, mentions, allowedSchemas);
  } catch (error) {
    throw asQueryFailure(error);
  } finally {
    // Fails only on a broken connection, which is then reported anyway.
    await session.query("ROLLBACK").catch(() => undefined);
  }
}

interface AuditedStatement extends Statement {
  /** Without its semicolon and what follows. */
  readonly text: string;
}

async function onlyStatement(query: string): Promise<AuditedStatement> {
  const statements = await statementsOf(query);
  const [statement] = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
  if (statement === undefined) throw new VitrinaError("INTERNAL", "A query was audited before it was examined.");
  return { ...statement, text: Buffer.from(query).subarray(statement.start, statement.end).toString() };
}

/** False on a standby, which cannot create views. */
async function requireAuditable(session: SqlSession): Promise<boolean> {
  const { rows } = await session.query(
    `SELECT pg_is_in_recovery()::text AS standby, current_database()::text AS database, current_user::text AS role,
            has_database_privilege(current_database(), 'TEMPORARY')::text AS temporary`,
  );
  const { standby, temporary, database, role } = rows[0] as CatalogueRow;
  if (standby === "true") return false;
  if (temporary === "true") return true;
  const grant = `GRANT TEMPORARY ON DATABASE ${shown(database ?? "")} TO ${shown(role ?? "")}`;
  throw new VitrinaError(
    "SOURCE_NOT_AUDITABLE",
    `The reader may not create the temporary view by which a query is examined in ${shown(database ?? "")}.`,
    { hint: `Run ${grant}.` },
  );
}

async function auditView(
  session: SqlSession,
  query: string,
  statement: AuditedStatement,
  allowedSchemas: readonly string[],
): Promise<readonly GuardFinding[]> {
  await session.query(`${BEFORE_QUERY}${statement.text}\n) AS q`).catch((error: unknown) => {
    throw asQueryFailure(error, placeOfMistake(error, query, statement));
  });
  const { rows } = await session.query("SELECT to_regclass($1)::oid::text AS view", [`pg_temp.${VIEW}`]);
  const view = [rows[0]?.["view"]];
  return [
    ...(await reachedFindings(session, view, allowedSchemas)),
    ...(await viewSizeFindings(session, view)),
    ...(await functionFindings(session, view)),
    ...(await objectFindings(session, view, allowedSchemas)),
  ];
}

/** The oids of the relations that the query names. */
async function mentionedRelations(session: SqlSession, { relations }: Mentions): Promise<readonly unknown[]> {
  const { rows } = await session.query(
    `SELECT c.oid::text AS relation
       FROM unnest($1::text[], $2::text[]) AS t (schema, name)
       JOIN pg_namespace n ON n.nspname = t.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.name`,
    [relations.map(({ schema }) => schema), relations.map(({ name }) => name)],
  );
  return rows.map(({ relation }) => relation);
}

/**
 * A standby cannot create views. There the names in the query are looked up one by one: its relations, followed
 * through their views as above, and every function that a call or a field could mean. A name without a schema can only
 * mean one of PostgreSQL's own.
 */
async function auditMentions(
  session: SqlSession,
  starts: readonly unknown[],
  { functions, fields }: Mentions,
  allowedSchemas: readonly string[],
): Promise<readonly GuardFinding[]> {
  return [
    ...(await reachedFindings(session, starts, allowedSchemas)),
    ...(await viewSizeFindings(session, starts)),
    ...(await functionFindings(session, starts)),
    ...(await objectFindings(session, starts, allowedSchemas)),
    ...(await namedFunctionFindings(session, functions, fields)),
  ];
}

const READABLE_KINDS = new Set(["r", "p", "v", "m"]);

async function reachedFindings(
  session: SqlSession,
  starts: readonly unknown[],
  allowedSchemas: readonly string[],
): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(RELATIONS_REACHED, [starts]);
  return (rows as CatalogueRow[]).flatMap(({ schema, name, kind, via_schema, via_name }) => {
    const relation = shown(schema ?? "", name ?? "");
    const through = via_schema === null ? "" : ` (reached through ${shown(via_schema ?? "", via_name ?? "")})`;
    if (!allowedSchemas.includes(schema ?? "")) {
      const rule = `is outside the allowed schemas (${allowedSchemas.join(", ")})`;
      return [{ what: `the table ${relation}${through} ${rule}` }];
    }
    if (READABLE_KINDS.has(kind ?? "")) return [];
    return [{ what: `the relation ${relation}${through} is neither a table nor a view of this database` }];
  });
}

async function viewSizeFindings(session: SqlSession, starts: readonly unknown[]): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(SIZES_OF_RULES, [starts]);
  const sizes = (rows as CatalogueRow[]).map(({ view, relation, times, length }) => ({
    view: view ?? "",
    relation: relation ?? null,
    times: Number(times),
    length: Number(length),
  }));
  return excessOfViews(sizes, starts.map(String));
}

/** One line for each relation that the rule of a view names, or one without a relation. */
interface RuleSize {
  readonly view: string;
  readonly relation: string | null;
  readonly times: number;
  readonly length: number;
}

/** As in `structure.ts`, but views belong to other people, who like to build them on top of one another. */
const MOST_RELATIONS = 5000;
/** For the analysed query, with all stars expanded. A column takes a few hundred. */
const MOST_ANALYSED_CHARACTERS = 24 * 1024 * 1024;

interface Expanded {
  readonly relations: number;
  readonly characters: number;
}

/** What the server plans once every view is expanded: views of views multiply. */
function excessOfViews(sizes: readonly RuleSize[], starts: readonly string[]): readonly GuardFinding[] {
  const rules = new Map<string, RuleSize[]>();
  for (const size of sizes) rules.set(size.view, [...(rules.get(size.view) ?? []), size]);
  const known = new Map<string, Expanded>();
  const expand = (relation: string): Expanded => {
    const done = known.get(relation);
    if (done !== undefined) return done;
    const rule = rules.get(relation) ?? [];
    // A rule cannot lead back to its own view, but nothing here depends on that.
    known.set(relation, { relations: 1, characters: 0 });
    const total = { relations: rule.length === 0 ? 1 : 0, characters: rule[0]?.length ?? 0 };
    for (const { relation: inner, times } of rule) {
      if (inner === null) continue;
      const { relations, characters } = expand(inner);
      total.relations += times * relations;
      total.characters += times * characters;
    }
    known.set(relation, total);
    return total;
  };
  const all = starts.map(expand);
  const relations = all.reduce((sum, one) => sum + one.relations, 0);
  const characters = all.reduce((sum, one) => sum + one.characters, 0);
  if (relations > MOST_RELATIONS) {
    const what = "tables once its views are put in their place";
    return [{ what: `the query comes to ${relations} ${what}, and at most ${MOST_RELATIONS} are allowed` }];
  }
  if (characters <= MOST_ANALYSED_CHARACTERS) return [];
  const [size, most] = [characters, MOST_ANALYSED_CHARACTERS].map((count) => `${Math.ceil(count / 1024 / 1024)} MiB`);
  return [
    { what: `the query comes to ${size} once it is analysed, and at most ${most} are allowed: select fewer columns` },
  ];
}

async function functionFindings(session: SqlSession, starts: readonly unknown[]): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(FUNCTIONS_CALLED, [starts]);
  return (rows as CatalogueRow[]).flatMap((row) => {
    const isPolicy = row["is_policy"] === "true";
    const why = isPolicy ? refusedInPolicy(row) : refusedByFacts(factsOf(row));
    const caller = isPolicy ? `the row security of ${row["via"]}` : row["via"];
    const through = row["via"] === null ? "" : ` (called by ${caller})`;
    return why === undefined ? [] : [{ what: `the function ${shownFunction(row)}${through} ${why}` }];
  });
}

/** What row security needs: to ask who reads. */
const ASKS_WHO_READS = /^(current_setting|pg_has_role|has_\w+_privilege|row_security_active)$/;

/** Policies belong to the table's owner: they may call what a query may not, and also functions of extensions. */
function refusedInPolicy(row: CatalogueRow): string | undefined {
  const facts = factsOf(row);
  if (facts.builtIn && ASKS_WHO_READS.test(facts.name)) return undefined;
  return refusedByFacts({ ...facts, builtIn: facts.builtIn || row["in_c"] === "true" });
}

/**
 * A name may mean any of the functions that have it. All except those that work on internal types must be harmless; a
 * query cannot obtain a value of such a type unless the function itself returns one.
 */
async function namedFunctionFindings(
  session: SqlSession,
  functions: readonly string[],
  fields: readonly string[],
): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(FUNCTIONS_BY_NAME, [functions, fields]);
  return [...new Set((rows as CatalogueRow[]).map(({ name }) => name ?? ""))].flatMap((name) => {
    const overloads = (rows as CatalogueRow[]).filter((row) => row["name"] === name).map(factsOf);
    const reasons = overloads.map(refusedByFacts);
    const isRefused = overloads.some(({ volatility }) => volatility === "v") || !reasons.includes(undefined);
    const why = refusedByName(name) ?? (isRefused ? reasons.find((reason) => reason !== undefined) : undefined);
    return why === undefined ? [] : [{ what: `the function ${shown(name)} ${why}` }];
  });
}

/** It may be called implicitly anywhere, so a type with user-defined code may not be used at all. */
async function ownCodeFindings(
  session: SqlSession,
  starts: readonly unknown[],
  { types, functions, fields, makesArrays }: Mentions,
): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(OWN_CODE_OF_TYPES, [
    starts,
    types.map(({ schema }) => schema),
    types.map(({ name }) => name),
    makesArrays || [...functions, ...fields].some((name) => new RegExp(MAKES_ROWS).test(name)),
  ]);
  return (rows as CatalogueRow[]).flatMap((row) => {
    const why = refusedByFacts(factsOf(row));
    const { type, function: name, does } = row;
    return why === undefined ? [] : [{ what: `the function ${name}, which ${does} values of type ${type}, ${why}` }];
  });
}

/** Operators, types, collations and the like that did not come with PostgreSQL. */
async function objectFindings(
  session: SqlSession,
  starts: readonly unknown[],
  allowedSchemas: readonly string[],
): Promise<readonly GuardFinding[]> {
  const { rows } = await session.query(OTHER_OBJECTS, [starts]);
  return (rows as CatalogueRow[]).flatMap(({ kind, schema, identity, base_type }) => {
    const what = `the ${kind} ${identity}`;
    if (kind === "operator") return [{ what: `${what} is not one of PostgreSQL's own operators` }];
    // A type with C functions of its own is part of an extension, wherever that was put.
    if (base_type === "true" || allowedSchemas.includes(schema ?? "")) return [];
    return [{ what: `${what} is outside the allowed schemas (${allowedSchemas.join(", ")})` }];
  });
}

function factsOf({ built_in, name, volatility, types }: CatalogueRow): FunctionFacts {
  return {
    name: name ?? "",
    builtIn: built_in === "true",
    volatility: volatility as FunctionFacts["volatility"],
    types: (types ?? "").split(","),
  };
}

function shownFunction({ schema, name }: CatalogueRow): string {
  return schema === "pg_catalog" ? shown(name ?? "") : shown(schema ?? "", name ?? "");
}

/** No connection, no time, no space, a lock: problems of the database, which the caller explains, as anywhere else. */
const TROUBLE = /^(08|25|40|53|55|57|58)/;

/** Any other error while PostgreSQL analyses a query is due to the query, or to missing rights of the reader. */
function asQueryFailure(error: unknown, place?: TextPlace): unknown {
  const { code } = error as Partial<ServerError>;
  if (error instanceof VitrinaError || code === undefined || !/^\w{5}$/.test(code) || TROUBLE.test(code)) return error;
  const where = place === undefined ? "" : `, ${shownPlace(place)}`;
  return new VitrinaError(
    "SOURCE_QUERY_FAILED",
    `Could not run the source query${where}: ${harmlessMessage(error as ServerError)} (SQLSTATE ${code}).`,
    {
      cause: error,
      ...(code === "42501" && { hint: READER_LACKS_RIGHT }),
      ...(place !== undefined && { extra: { ...place } }),
    },
  );
}

function placeOfMistake(error: unknown, query: string, { start, text }: AuditedStatement): TextPlace | undefined {
  const characters = Number((error as { position?: string }).position ?? 0) - 1 - BEFORE_QUERY.length;
  return characters < 0 ? undefined : placeOf(query, start + byteOffset(text, characters));
}
