import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { TABLE_ERRORS } from "./errors.ts";
import { type Conversion, fitOf, isBuiltIn } from "./type-fit.ts";

/** A column of a table that is there. */
export interface ExistingColumn extends Column {
  /** A row without a value for it is refused. */
  readonly required: boolean;
  /** A row without a value for it gets one. */
  readonly filled: boolean;
  /** It is computed, and takes no value. */
  readonly computed: boolean;
  /** The built-in type under a domain, or the one that it is another name for. */
  readonly baseType?: string;
  /** Of an enum. */
  readonly labels?: readonly string[];
  /** Different texts can be equal in it: by its collation, or by its type, as in citext. */
  readonly isLoose: boolean;
}

export async function readColumns(client: Client, label: string): Promise<ExistingColumn[]> {
  const { rows } = await client.query(
    `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
            a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required,
            a.atthasdef OR a.attidentity <> '' AS filled,
            a.attgenerated <> '' OR a.attidentity = 'a' AS computed,
            CASE WHEN t.typtype = 'd' THEN base.type
                 WHEN EXISTS (SELECT FROM pg_cast c WHERE c.castsource = 'text'::regtype AND c.casttarget = t.oid
                                 AND c.castmethod = 'b' AND c.castcontext <> 'e' AND t.oid <> 'varchar'::regtype
                                 AND t.oid <> 'bpchar'::regtype) THEN 'text' END AS base_type,
            (SELECT to_json(array_agg(e.enumlabel)) FROM pg_enum e WHERE e.enumtypid = t.oid) AS labels,
            EXISTS (SELECT FROM pg_collation l WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)
              OR EXISTS (SELECT FROM pg_type b WHERE b.oid = coalesce(nullif(base.oid, 0), t.oid) AND b.typtype = 'b'
                            AND b.typelem = 0 AND b.typnamespace <> 'pg_catalog'::regnamespace) AS loose
       FROM pg_attribute a
       JOIN pg_type t ON t.oid = a.atttypid
      CROSS JOIN LATERAL (
        WITH RECURSIVE below AS (
          SELECT t.typbasetype AS oid, t.typtypmod AS modifier, 0 AS depth
          UNION ALL
          SELECT d.typbasetype, d.typtypmod, below.depth + 1
            FROM below JOIN pg_type d ON d.oid = below.oid AND d.typtype = 'd'
        ) SELECT oid, format_type(oid, modifier) AS type FROM below ORDER BY depth DESC LIMIT 1
      ) AS base
      WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
      ORDER BY a.attnum`,
    [label],
  );
  return rows.map(({ name, type, required, filled, computed, base_type, labels, loose }) => ({
    name,
    type,
    required: required === "t",
    filled: filled === "t",
    computed: computed === "t",
    isLoose: loose === "t",
    ...(base_type !== null && { baseType: base_type }),
    ...(labels !== null && { labels: JSON.parse(labels) as string[] }),
  }));
}

/** How values are converted for columns of another type. */
export type Conversions = ReadonlyMap<string, Conversion>;

export function conversionsInto(existing: readonly ExistingColumn[], columns: readonly Column[]): Conversions {
  const found = new Map<string, Conversion>();
  for (const column of columns) {
    const target = existing.find(({ name }) => name === column.name);
    const fit = target === undefined ? "same" : fitOf(column, target);
    if (fit !== "same" && !("misfit" in fit)) found.set(column.name, fit);
  }
  return found;
}

/** Problems that the types alone show: such a column would change values, or take none of them. */
export function typeProblems(
  label: string,
  existing: readonly ExistingColumn[],
  columns: readonly Column[],
): VitrinaError[] {
  return columns.flatMap((column) => {
    const target = existing.find(({ name }) => name === column.name);
    if (target === undefined) return [];
    const place = `${label}.${quoteIdentifier(column.name)}`;
    if (target.computed) {
      const hint = "Leave the column out of the query, or let the target take values for it.";
      return [new VitrinaError("TARGET_TYPE_MISMATCH", `${place} computes its own values.`, { hint })];
    }
    const fit = fitOf(column, target);
    if (fit === "same" || !("misfit" in fit)) return [];
    const message = `${place} is of type ${target.type}, the query returns ${column.type}: ${fit.misfit}.`;
    return [new VitrinaError("TARGET_TYPE_MISMATCH", message, { hint: wayOut(column, target) })];
  });
}

/**
 * Where rows are deleted by their keys: two keys of the source that are one for the target would share a row, and the one
 * that is deleted would take the other's along.
 */
export function looseKeyProblems(
  label: string,
  key: readonly string[],
  existing: readonly ExistingColumn[],
): VitrinaError[] {
  return existing
    .filter(({ name, isLoose }) => isLoose && key.includes(name))
    .map(({ name, type }) => {
      const message = `${label}.${quoteIdentifier(name)}, of type ${type}, is in the key, and takes different texts for the same: rows cannot be deleted by it.`;
      const hint = "Change it to text with a deterministic collation, or use mode full.";
      return new VitrinaError("TARGET_TYPE_MISMATCH", message, { hint });
    });
}

function wayOut(column: Column, target: ExistingColumn): string {
  const type = target.baseType ?? target.type;
  const cast = `${quoteIdentifier(column.name)}::${type}`;
  const change = `change the column of the target to ${column.plainType ?? column.type}`;
  return isBuiltIn(type) ? `Cast it in the query if that is meant (${cast}), or ${change}.` : `Cast it, or ${change}.`;
}

/** A new column never gets a type that belongs to the source: the writer may not even see it. */
export function newColumn({ name, type, plainType }: Column): Column {
  return { name, type: plainType ?? type };
}

/** Types of new columns that the target's database lacks, or the writer may not use. */
export async function newColumnProblems(
  client: Client,
  label: string,
  added: readonly Column[],
): Promise<VitrinaError[]> {
  const own = added.filter(({ type }) => !isBuiltIn(type));
  if (own.length === 0) return [];
  const { rows } = await client.query<{ type: string }>(
    `SELECT format_type(t.oid, NULL) AS type FROM pg_type t
      WHERE format_type(t.oid, NULL) = ANY ($1)
        AND has_schema_privilege(t.typnamespace, 'USAGE') AND has_type_privilege(t.oid, 'USAGE')`,
    [own.map(({ type }) => withoutModifier(type))],
  );
  const usable = new Set(rows.map(({ type }) => type));
  return own
    .filter(({ type }) => !usable.has(withoutModifier(type)))
    .map(({ name, type }) => {
      const message = `${label} cannot have ${quoteIdentifier(name)} of type ${type}: the writer can use no such type in the target's database.`;
      const hint = `Cast it in the query, e.g. ${quoteIdentifier(name)}::text, or create the type there and let vitrina_writer use it.`;
      return new VitrinaError("TARGET_TYPE_MISMATCH", message, { hint });
    });
}

/** Extensions have types such as `public.vector(3)`, too. */
function withoutModifier(type: string): string {
  return type.replace(/\([^()"]*\)(?=(?:\[\])?$)/, "");
}

export function mappedTypeWarnings(label: string, added: readonly Column[]): VitrinaError[] {
  return added
    .filter(({ plainType }) => plainType !== undefined)
    .map(({ name, type, plainType }) => {
      const place = `${label}.${quoteIdentifier(name)}`;
      return new VitrinaError(
        TABLE_ERRORS.TARGET_TYPE_MAPPED,
        `${place} will be ${plainType}: ${type} belongs to the source.`,
      );
    });
}

/** A renamed column leaves the old one behind, with the values it had. Where others add columns, that is their business. */
export function leftColumnWarnings(label: string, extra: readonly ExistingColumn[]): VitrinaError[] {
  return extra
    .filter(({ filled, required }) => !filled && !required)
    .map(({ name }) => {
      const column = quoteIdentifier(name);
      const hint = `If it was renamed or is not needed any more, let the owner of the table run ALTER TABLE ${label} DROP COLUMN ${column}; it takes its values with it.`;
      const message = `${label}.${column} is not in the query: it keeps its old values, and new rows have none.`;
      return new VitrinaError("TARGET_COLUMN_LEFT", message, { hint });
    });
}
