import type { SqlSession } from "../../../../domain/sql-session.ts";
import { type RecordedTable, recordedNameIn } from "../recorder.ts";
import { type NamedRelation, readTableFacts, type TableFacts } from "../recording.ts";

/** What the source's catalogue says about a slot, its publication, and the tables in it. */

interface SlotFacts {
  readonly type: string;
  readonly plugin: string | null;
  readonly database: string | null;
  /** Older servers only say that it is lost. */
  readonly lost: string | null;
}

interface PublicationFacts {
  readonly oid: string;
  /** Of its row in the catalogue: each change gives it another one. */
  readonly xmin: string;
  readonly publishesAll: boolean;
  readonly isViaRoot: boolean;
  /** s: stored generated columns are published, n: none are; null: before PostgreSQL 18 none can be. */
  readonly generated: string | null;
}

export interface PublishedPart {
  readonly relation: string;
  readonly oid: string;
  /** `schema.table` of the part itself. */
  readonly name: string;
  readonly kind: string;
  /** How it came into the publication; null: it is not in it. */
  readonly membership: string | null;
  readonly hasRowFilter: boolean;
  /** Where not all of its columns are published. */
  readonly publishedColumns: readonly string[] | null;
  /** d: by the primary key, i: by an index, f: all columns, n: nothing. */
  readonly identity: string;
  /** The oid of the index. */
  readonly identityIndex: string | null;
  /** Those that tell of a row which one it was; none of `f`, which has them all. */
  readonly identityColumns: readonly string[];
  /** The primary key, whatever the identity. */
  readonly primaryKey: readonly string[];
  /** The columns of its unique indexes that may be its replica identity. */
  readonly uniqueKeys: readonly (readonly string[])[];
  /** Generated columns, by whether the table has their values. */
  readonly stored: readonly string[];
  readonly virtual: readonly string[];
}

interface ServerSettings {
  readonly walLevel: string;
  readonly database: string;
  readonly reader: string;
  readonly isStandby: boolean;
  readonly mayReplicate: boolean;
  /** -1: without a limit. */
  readonly mostKept: string;
}

export interface SlotRecording extends TableFacts {
  readonly slot: SlotFacts | undefined;
  readonly publication: PublicationFacts | undefined;
  readonly published: readonly PublishedPart[];
  readonly server: ServerSettings | undefined;
}

/** Not by the snapshot: slots are no rows. Columns that came with a later release are read by their names. */
const SLOT = `
  SELECT s.slot_type AS type, s.plugin, s.database,
         CASE WHEN s.wal_status = 'lost' OR to_jsonb(s) ->> 'invalidation_reason' IS NOT NULL
              THEN coalesce(to_jsonb(s) ->> 'invalidation_reason', 'wal_removed') END AS lost
    FROM pg_replication_slots s WHERE s.slot_name = $3`;

const PUBLICATION = `
  SELECT p.oid::text, p.xmin::text, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AS "publishesAll",
         p.pubviaroot AS "isViaRoot", to_jsonb(p) ->> 'pubgencols' AS generated
    FROM pg_publication p WHERE p.pubname = $3`;

const keyColumns = (index: string): string => `(
    SELECT coalesce(jsonb_agg(a.attname ORDER BY col.n), '[]')
      FROM unnest(${index}.indkey::int2[]) WITH ORDINALITY AS col (attnum, n)
      JOIN pg_attribute a ON a.attrelid = ${index}.indrelid AND a.attnum = col.attnum WHERE col.n <= ${index}.indnkeyatts)`;

const generatedColumns = (kind: string): string => `(
    SELECT coalesce(jsonb_agg(a.attname ORDER BY a.attnum), '[]') FROM pg_attribute a
     WHERE a.attrelid = c.oid AND a.attgenerated = '${kind}' AND NOT a.attisdropped)`;

/** A publication reaches a table by its name, by a table that it is a partition of, by a schema, or because it has all. */
const PUBLISHED = `
  WITH RECURSIVE tree (relation, oid) AS (
    SELECT w.relation, c.oid FROM jsonb_to_recordset($1::jsonb) AS w (relation text, schema name, name name)
      JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
    UNION
    SELECT t.relation, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
  ), up (oid, above) AS (
    SELECT oid, oid FROM tree
    UNION
    SELECT u.oid, i.inhparent FROM up u JOIN pg_class c ON c.oid = u.above AND c.relispartition JOIN pg_inherits i ON i.inhrelid = u.above
  ), member AS (
    SELECT u.oid, string_agg(m.how, ', ' ORDER BY m.how) AS membership, bool_or(m.filtered) AS filtered, min(m.columns) AS columns
      FROM up u JOIN pg_class c ON c.oid = u.above
      JOIN pg_publication p ON p.pubname = $3
     CROSS JOIN LATERAL (
       SELECT 'all' AS how, false AS filtered, NULL::text AS columns WHERE p.puballtables
       UNION ALL
       SELECT concat_ws(' ', 'schema', s.oid, s.xmin), false, NULL FROM pg_publication_namespace s
        WHERE s.pnpubid = p.oid AND s.pnnspid = c.relnamespace
       UNION ALL
       SELECT concat_ws(' ', 'table', r.oid, r.xmin), r.prqual IS NOT NULL,
              (SELECT jsonb_agg(a.attname)::text FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs::int2[]))
         FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid
     ) AS m
     GROUP BY u.oid
  )
  SELECT t.relation, t.oid::text, ${recordedNameIn("n", "c")} AS name, c.relkind AS kind, m.membership,
         coalesce(m.filtered, false) AS "hasRowFilter", m.columns::jsonb AS "publishedColumns",
         c.relreplident AS identity, x.indexrelid::text AS "identityIndex", ${keyColumns("x")} AS "identityColumns",
         ${keyColumns("k")} AS "primaryKey",
         (SELECT coalesce(jsonb_agg(${keyColumns("u")} ORDER BY u.indexrelid), '[]') FROM pg_index u
           WHERE u.indrelid = c.oid AND u.indisunique AND u.indisvalid AND u.indimmediate AND u.indpred IS NULL
             AND u.indexprs IS NULL AND NOT EXISTS (
                   SELECT FROM unnest(u.indkey::int2[]) WITH ORDINALITY AS col (attnum, n)
                     JOIN pg_attribute a ON a.attrelid = u.indrelid AND a.attnum = col.attnum
                    WHERE col.n <= u.indnkeyatts AND NOT a.attnotnull)) AS "uniqueKeys",
         ${generatedColumns("s")} AS stored, ${generatedColumns("v")} AS virtual
    FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN member m ON m.oid = t.oid
    LEFT JOIN pg_index k ON k.indrelid = c.oid AND k.indisprimary AND k.indimmediate AND k.indisvalid
    LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisvalid
          AND CASE c.relreplident WHEN 'd' THEN x.indexrelid = k.indexrelid WHEN 'i' THEN x.indisreplident ELSE false END
   ORDER BY t.relation, t.oid`;

/** RDS gives the right by a role of its own. */
const SERVER = `
  SELECT current_setting('wal_level') AS "walLevel", current_database() AS database, current_user AS reader,
         pg_is_in_recovery() AS "isStandby", current_setting('max_slot_wal_keep_size') AS "mostKept",
         EXISTS (SELECT FROM pg_roles r WHERE CASE WHEN r.rolname = current_user THEN r.rolreplication OR r.rolsuper
                                                   ELSE r.rolname = 'rds_replication' AND pg_has_role(r.oid, 'MEMBER') END) AS "mayReplicate"`;

export async function readSlotRecording(
  session: SqlSession,
  slot: string,
  tables: readonly RecordedTable[],
  named: readonly NamedRelation[],
): Promise<SlotRecording> {
  const more = { slot: SLOT, publication: PUBLICATION, published: PUBLISHED, server: SERVER };
  const lists = await readTableFacts<{
    slot: SlotFacts;
    publication: PublicationFacts;
    published: PublishedPart;
    server: ServerSettings;
  }>(session, tables, named, more, [slot]);
  return { ...lists, slot: lists.slot[0], publication: lists.publication[0], server: lists.server[0] };
}
