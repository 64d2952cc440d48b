import type { Client } from "../../../postgres/connection.ts";
import { quoteIdentifier, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { countKeyBefore } from "../stage.ts";
import { columnDefinitions, nameList, type TargetTable } from "../target-table.ts";
import type { TableLoad } from "./load.ts";
import { dropTables, isMarked, loadTable, markLoad } from "./load-table.ts";

const NAME = "new table";

/** Names the key after the table it will belong to, unless something else has that name. */
async function primaryKeyName(client: Client, { schema, table }: TableName): Promise<string> {
  const name = `${table}_pkey`;
  if (Buffer.byteLength(name) > 63) return "";
  const { rows } = await client.query("SELECT to_regclass($1) IS NULL AS free", [quoteTable({ schema, table: name })]);
  return rows[0]?.free === "t" ? `CONSTRAINT ${quoteIdentifier(name)}` : "";
}

/** The target does not exist yet: fill a table without indexes, then give it its key and its name at once. */
export function newTableLoad(table: TargetTable, loadId: string): TableLoad {
  const loading = loadTable(table.name, loadId, "load");
  const label = quoteTable(loading);
  const names = nameList(table.columns);
  const insertFrom = (relation: string) => `INSERT INTO ${label} (${names}) SELECT ${names} FROM ${relation} AS s`;
  return {
    name: NAME,
    canResume: (client) => isMarked(client, loading, NAME),
    batchSettings: "",

    async begin(client) {
      await dropTables(client, [loading]);
      await client.query(`CREATE TABLE ${label} (${columnDefinitions(table.columns)})`);
      const keys = table.key.map(({ name }) => `ALTER ${quoteIdentifier(name)} SET NOT NULL`);
      await client.query(`ALTER TABLE ${label} ${keys.join(", ")}`);
      await markLoad(client, loading, NAME);
    },

    trialOf: insertFrom,

    async apply(client, { rows: { relation, distinct, duplicates }, range }) {
      const again = await countKeyBefore(client, table, range.after);
      await client.query(insertFrom(relation));
      return { rows_written: distinct - again, rows_unchanged: 0, rows_deduplicated: duplicates + again };
    },

    async finish(client) {
      const named = await primaryKeyName(client, table.name);
      await client.query(`ALTER TABLE ${label} ADD ${named} PRIMARY KEY (${nameList(table.key)})`);
      await client.query(`COMMENT ON TABLE ${label} IS NULL`);
      await client.query(`ALTER TABLE ${label} RENAME TO ${quoteIdentifier(table.name.table)}`);
      return { rows_deleted: 0 };
    },
  };
}
