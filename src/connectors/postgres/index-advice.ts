import type { Client } from "../../postgres/connection.ts";
import type { IndexAdvice } from "../inspector.ts";
import { type DescribedColumn, describeColumns } from "./describe-query.ts";
import { orderColumns } from "./read-session.ts";

/** Which index would let a query be entered at any position of its order. */
export async function adviseIndex(client: Client, query: string, orderBy: readonly string[]): Promise<IndexAdvice> {
  const columns = await describeColumns(client, query);
  const ordered = orderBy.flatMap((name) => columns.find((column) => column.name === name) ?? []);
  const relations = new Set(ordered.map(({ origin }) => origin?.relation));
  const [relation] = relations;
  if (relation === undefined || relations.size !== 1) {
    const reason = "The query computes the columns that it is ordered by, or takes them from several tables.";
    return { kind: "unknown", reason };
  }
  return adviseFor(client, relation, ordered);
}

async function adviseFor(client: Client, relation: number, ordered: readonly DescribedColumn[]): Promise<IndexAdvice> {
  const [first, ...rest] = await orderColumns(
    client,
    ordered,
    ordered.map(({ name }) => name),
  );
  const numbers = ordered.map(({ origin }) => origin?.column);
  const { rows } = await client.query<{ label: string; kind: string; names: string; indexed: string }>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS label, c.relkind AS kind,
            (SELECT to_json(array_agg(quote_ident(a.attname) ORDER BY w.n))
               FROM unnest($2::int2[]) WITH ORDINALITY AS w (attnum, n)
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = w.attnum) AS names,
            EXISTS (SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
                     WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'
                       AND i.indkey[0] = ($2::int2[])[1]
                       AND i.indcollation[0] IN (0, '"C"'::regcollation)) AS indexed
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1`,
    [relation, numbers],
  );
  const [found] = rows;
  if (found === undefined || first === undefined) return { kind: "unknown", reason: "Its table was not found." };
  if (found.indexed === "t") return { kind: "indexed" };
  if (!["r", "p", "m"].includes(found.kind)) {
    const reason = `The query reads ${found.label}, which is not a table: the index belongs to the tables behind it.`;
    return { kind: "unknown", reason };
  }
  const names = JSON.parse(found.names) as string[];
  // Texts are compared by their bytes, which only an index of that collation can do.
  const parts = [first, ...rest].map(({ collatable }, index) => `${names[index]}${collatable ? ' COLLATE "C"' : ""}`);
  return { kind: "missing", statement: `CREATE INDEX ON ${found.label} (${parts.join(", ")})` };
}
