/**
 * A common table expression over $1, a relation, and $2, the number of its column: all relations that this column
 * comes from. A view's rule holds, for each of its columns, the table and the column that it shows; a partitioned or
 * inherited table has its parts.
 */
export const BEHIND_COLUMN = `behind (relid, attnum) AS (
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
  )`;
