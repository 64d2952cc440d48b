import { isTimeType } from "../../domain/watermark.ts";
import type { Client } from "../../postgres/connection.ts";
import { BEHIND_COLUMN } from "./behind-column.ts";
import { describeColumns } from "./describe-query.ts";

interface CachingSequence {
  readonly name: string;
  /** How many numbers a session is given at once. */
  readonly cache: number;
}

/**
 * Sequences with a CACHE behind a column of the query: as identity, as serial, or by a default. Followed through views,
 * as far as they show the column as it is, and into the tables that inherit it. Computed columns, and numbers that
 * a program assigns itself, leave no such trace.
 */
export async function cachingSequences(client: Client, query: string, name: string): Promise<CachingSequence[]> {
  const columns = await describeColumns(client, query);
  const column = columns.find((one) => one.name === name);
  if (column?.origin == null || isTimeType(column.type)) return [];
  const { origin } = column;
  const { rows } = await client.query<{ name: string; cache: string }>(SEQUENCES_BEHIND, [
    origin.relation,
    origin.column,
  ]);
  return rows.map((row) => ({ name: row.name, cache: Number(row.cache) }));
}

const SEQUENCES_BEHIND = `
  WITH RECURSIVE ${BEHIND_COLUMN}, sequences AS (
    SELECT d.objid AS oid
      FROM behind JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = behind.relid
       AND d.refobjsubid = behind.attnum AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    UNION
    SELECT d.refobjid
      FROM behind JOIN pg_attrdef f ON f.adrelid = behind.relid AND f.adnum = behind.attnum
      JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
  )
  SELECT s.seqrelid::regclass::text AS name, s.seqcache::text AS cache
    FROM sequences JOIN pg_sequence s ON s.seqrelid = sequences.oid
   WHERE s.seqcache > 1
   ORDER BY 1`;
