import type { Client } from "../../postgres/connection.ts";
import { namedRelations } from "../../sql-guard/named-relations.ts";
import { formatTable, parseTable } from "./target.ts";

/** What a query reads, by the text of it: a view counts as itself. Written as targets are. */
export async function namedTables(query: string): Promise<readonly string[]> {
  const named = await namedRelations(query);
  return named.map(({ schema, name }) => tableText(schema, name)).sort();
}

/** The tables behind tables and views; a materialized view is a table of its own, which changes when it is refreshed. */
export async function tablesBehind(
  client: Client,
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const asked = names.flatMap((text) => parseTable(text) ?? []);
  const { rows } = await client.query<Record<"start" | "schema" | "name", string>>(TABLES_BEHIND, [
    asked.map(({ schema }) => schema),
    asked.map(({ table }) => table),
  ]);
  const behind = new Map<string, string[]>(asked.map((one) => [formatTable(one), []]));
  for (const { start, schema, name } of rows) {
    const one = asked[Number(start) - 1];
    if (one !== undefined) behind.get(formatTable(one))?.push(tableText(schema, name));
  }
  return behind;
}

function tableText(schema: string, table: string): string {
  return formatTable({ kind: "postgres", schema, table });
}

const TABLES_BEHIND = `
  WITH RECURSIVE behind (start, relation) AS (
    SELECT a.n, c.oid
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (schema, name, n)
      JOIN pg_namespace s ON s.nspname = a.schema JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = a.name
    UNION
    SELECT behind.start, d.refobjid
      FROM behind JOIN pg_class v ON v.oid = behind.relation AND v.relkind = 'v'
      JOIN pg_rewrite r ON r.ev_class = v.oid
      JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                      AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid
  )
  SELECT behind.start::text AS start, s.nspname::text AS schema, c.relname::text AS name
    FROM behind JOIN pg_class c ON c.oid = behind.relation AND c.relkind IN ('r', 'p', 'm', 'f')
    JOIN pg_namespace s ON s.oid = c.relnamespace
   ORDER BY 1, 2, 3`;
