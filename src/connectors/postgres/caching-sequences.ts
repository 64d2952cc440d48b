import { isTimeType } from "../../domain/watermark.ts";
import type { Client } from "../../postgres/connection.ts";
import { describeColumns } from "./describe-query.ts";

interface CachingSequence {
  readonly name: string;
  /** How many numbers a session is given at once. */
  readonly cache: number;
}

/**
 * Sequences with a CACHE behind a column of the query: as identity, as serial, or by a default. Followed through views,
 * as far as they show the column as it is, and into the tables that inherit it. A column that is computed, and numbers
 * that a program gives out by itself, have no such trace.
 */
export async function cachingSequences(client: Client, query: string, name: string): Promise<CachingSequence[]> {
  const columns = await describeColumns(client, query);
  const column = columns.find((one) => one.name === name);
  if (column?.origin == null || isTimeType(column.type)) return [];
  const { origin } = column;
  const { rows } = await client.query<{ name: string; cache: string }>(BEHIND_COLUMN, [origin.relation, origin.column]);
  return rows.map((row) => ({ name: row.name, cache: Number(row.cache) }));
}

/** A view's rule holds, for each of its columns, the table and the column that it shows. */
const BEHIND_COLUMN = `
  WITH RECURSIVE behind (relid, attnum) AS (
    SELECT $1::oid, $2::int
    UNION
    SELECT step.relid, step.attnum
      FROM behind CROSS JOIN LATERAL (
        SELECT found[1]::oid AS relid, found[2]::int AS attnum
          FROM pg_rewrite r
         CROSS JOIN LATERAL regexp_matches(
           r.ev_action::text, ':resno ' || behind.attnum || ' :resname [^{}]*?:resorigtbl (\\d+) :resorigcol (\\d+)', 'g') AS found
         WHERE r.ev_class = behind.relid AND r.ev_type = '1'
        UNION
        SELECT i.inhrelid, child.attnum
          FROM pg_inherits i
          JOIN pg_attribute parent ON parent.attrelid = i.inhparent AND parent.attnum = behind.attnum
          JOIN pg_attribute child ON child.attrelid = i.inhrelid AND child.attname = parent.attname
         WHERE i.inhparent = behind.relid
      ) AS step
     WHERE step.relid <> 0
  ), sequences AS (
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
