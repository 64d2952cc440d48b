import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier, type TableName } from "../../postgres/identifiers.ts";
import type { SinkRequest } from "../sink.ts";
import { TABLE_ERRORS } from "./errors.ts";

/** What the owner of a table allows those who write to it. */
export interface TargetRules {
  /** With these a load would fail, or lose rows silently. */
  readonly problems: readonly VitrinaError[];
  readonly warnings: readonly VitrinaError[];
  /** A trigger sees each row before it is written, and may leave it out. */
  readonly mayLeaveRowsOut: boolean;
}

interface RulesRow {
  readonly role: string;
  readonly rules: string | null;
  readonly secured: string;
  readonly leaves_out: string;
  readonly lacking: string | null;
  readonly owns: string;
}

type RequestedLoad = SinkRequest["load"];

const rightsFor = (load: RequestedLoad): readonly string[] => {
  const deletes = load.kind === "replace" || load.deletes === true;
  return ["SELECT", "INSERT", "UPDATE", ...(deletes ? ["DELETE"] : [])];
};

/** `load` undefined: the table is only read. */
export async function readTargetRules(
  client: Client,
  label: string,
  load: RequestedLoad | undefined,
  addsColumns: boolean,
): Promise<TargetRules> {
  if (load === undefined) return { problems: [], warnings: [], mayLeaveRowsOut: false };
  const { rows } = await client.query<RulesRow>(
    `SELECT current_user AS role, row_security_active(c.oid) AS secured,
            (SELECT string_agg(quote_ident(r.rulename), ', ' ORDER BY r.rulename) FROM pg_rewrite r
              WHERE r.ev_class = c.oid AND r.ev_enabled <> 'D') AS rules,
            EXISTS (SELECT FROM pg_trigger t
                     WHERE (t.tgrelid = c.oid OR t.tgrelid IN (SELECT relid FROM pg_partition_tree(c.oid)))
                       AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 3 = 3) AS leaves_out,
            (SELECT string_agg(p, ', ' ORDER BY n) FROM unnest($2::text[]) WITH ORDINALITY AS wanted (p, n)
              WHERE NOT CASE p WHEN 'DELETE' THEN has_table_privilege(c.oid, p)
                               ELSE has_any_column_privilege(c.oid, p) END) AS lacking,
            pg_has_role(c.relowner, 'USAGE') AS owns
       FROM pg_class c WHERE c.oid = to_regclass($1)`,
    [label, rightsFor(load)],
  );
  const [row] = rows;
  if (row === undefined) return { problems: [], warnings: [], mayLeaveRowsOut: false };
  return {
    problems: [
      ...(row.rules === null ? [] : [rewritten(label, row.rules)]),
      ...(row.lacking === null ? [] : [lacksRights(label, row.role, row.lacking)]),
      ...(addsColumns && row.owns !== "t" ? [addsNoColumns(label, row.role)] : []),
    ],
    warnings: row.secured === "t" ? [secured(label, row.role)] : [],
    mayLeaveRowsOut: row.leaves_out === "t",
  };
}

/** A new table, and the tables a full load keeps beside its target until it is done, need a schema to be in. */
export async function schemaProblems(
  client: Client,
  { schema }: TableName,
  load: RequestedLoad | undefined,
  exists: boolean,
): Promise<VitrinaError[]> {
  if (load === undefined || (exists && load.kind === "upsert")) return [];
  const label = quoteIdentifier(schema);
  const { rows } = await client.query<{ role: string; allowed: string | null }>(
    "SELECT current_user AS role, has_schema_privilege(to_regnamespace($1), 'CREATE') AS allowed",
    [label],
  );
  const { role = "", allowed = null } = rows[0] ?? {};
  if (allowed === "t") return [];
  const hint = `Let its owner run: GRANT USAGE, CREATE ON SCHEMA ${label} TO ${quoteIdentifier(role)}.`;
  if (allowed === null) {
    const message = `There is no schema ${label} in the target's database.`;
    return [new VitrinaError("TARGET_MISSING", message, { hint: `Create it, and then: ${hint}` })];
  }
  return [new VitrinaError("PERMISSION_DENIED", `${role} may not create tables in the schema ${label}.`, { hint })];
}

function rewritten(label: string, rules: string): VitrinaError {
  const message = `${label} has rules that rewrite what is written to it: ${rules}.`;
  return new VitrinaError(TABLE_ERRORS.TARGET_HAS_RULES, message);
}

function lacksRights(label: string, role: string, lacking: string): VitrinaError {
  const hint = `Let the owner of the table run: GRANT ${lacking} ON ${label} TO ${quoteIdentifier(role)}.`;
  return new VitrinaError("PERMISSION_DENIED", `${role} lacks ${lacking} on ${label}.`, { hint });
}

function addsNoColumns(label: string, role: string): VitrinaError {
  const hint = "Let its owner add the column, or make it the writer's: ALTER TABLE … OWNER TO.";
  return new VitrinaError("PERMISSION_DENIED", `${role} does not own ${label}, so it cannot add columns.`, { hint });
}

function secured(label: string, role: string): VitrinaError {
  const message = `${label} has row-level security, which holds for ${role}: rows that its policies hide are not seen.`;
  return new VitrinaError(TABLE_ERRORS.TARGET_ROWS_HIDDEN, message);
}
