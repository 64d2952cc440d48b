import { quoteIdentifier, quoteLiteral, quoteTable } from "../../../../postgres/identifiers.ts";
import { type RecordedTable, recordedName } from "../recorder.ts";
import { dollarQuote, transaction } from "../script.ts";
import { TREE } from "../trigger-script.ts";

/** The script that the owner of a source runs so that a slot tells of its changes, and the one that takes it away. */

export interface SlotScript {
  /** Of the slot and of the publication. */
  readonly name: string;
  readonly tables: readonly RecordedTable[];
  /** Published beyond these, and to stay so. */
  readonly kept?: readonly PublishedName[];
  /** The role that reads the source. */
  readonly reader: string;
}

type PublishedName = Pick<RecordedTable, "schema" | "name">;

const literal = (text: string): string => quoteLiteral(text).trim();

/** Can be run again: what is as it should be is left alone. The slot comes last, because it decodes by the publication. */
export function slotScript({ name, tables, kept = [], reader }: SlotScript): string {
  return [
    HEADER,
    transaction(requirements(reader).trim()),
    transaction(generatedColumns(name).trim()),
    IDENTITIES.trim(),
    ...tables.map((table) => transaction(identityScript(name, table))),
    transaction(
      [
        // Where psql goes on after an error, nothing is published whose identity could not be set.
        ...tables.map((table) => identityScript(name, table)),
        publicationScript(name, [...tables, ...kept]).trim(),
        generatedColumns(name).trim(),
      ].join("\n"),
    ),
    slotItself(name).trim(),
    "",
  ].join("\n\n");
}

const HEADER = `-- Lets Vitrina follow the changes of this database by a logical replication slot. Run it as the owner of the tables, who
-- also needs REPLICATION to create the slot, or as a superuser. It can be run again at any time, and changes only what is
-- not yet as it should be.
--
-- A role with REPLICATION can read every change of every table of every database that it may connect to, also without
-- SELECT, and can copy the whole server if pg_hba.conf lets it connect for replication. Vitrina needs no such connection.
--
-- An UPDATE or DELETE of a published table fails where the table has no replica identity. So do not drop the primary key,
-- or the index of the identity, of a table below without giving it another identity first; and where that is FULL, do not
-- add a virtual generated column.`;

export function slotRemovalScript(name: string): string {
  return `-- Takes away the slot and the publication. Marts that follow can then no longer be loaded. Replica identities stay as
-- they are: ALTER TABLE … REPLICA IDENTITY DEFAULT sets one back where nobody else needs it.
SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots
 WHERE slot_name = ${literal(name)} AND database = current_database();
DROP PUBLICATION IF EXISTS ${quoteIdentifier(name)};
`;
}

/** Takes single tables out of the publication. Can be run again. */
export function unpublishingScript(name: string, tables: readonly PublishedName[]): string {
  return `${[UNPUBLISHING_HEADER, ...tables.map((table) => transaction(unpublished(name, table)))].join("\n\n")}\n`;
}

const UNPUBLISHING_HEADER = `-- Takes out of the publication what no saved pipeline of this connection follows any more. Leave this part away if another
-- connection, or another Vitrina, follows one of these tables by the same slot.`;

/** With the tables that inherit from it: a publication lists each of them. */
function unpublished(publication: string, table: PublishedName): string {
  return `-- ${recordedName(table).replaceAll(/\s/g, " ")}
DO $do$
DECLARE
  wanted_schema constant name := ${literal(table.schema)};
  wanted_name constant name := ${literal(table.name)};
  part record;
BEGIN
  FOR part IN ${TREE}
    SELECT DISTINCT t.oid, t.oid::regclass AS relation
      FROM tree t JOIN pg_publication_rel r ON r.prrelid = t.oid JOIN pg_publication p ON p.oid = r.prpubid
     WHERE p.pubname = ${literal(publication)} ORDER BY t.oid
  LOOP
    EXECUTE format('ALTER PUBLICATION %I DROP TABLE ONLY %s', ${literal(publication)}, part.relation);
  END LOOP;
END
$do$;`;
}

const requirements = (reader: string): string => `
DO $do$
BEGIN
  IF current_setting('wal_level') <> 'logical' THEN
    RAISE EXCEPTION 'The server has wal_level = %, so no slot can tell of changes.', current_setting('wal_level')
      USING HINT = 'Run ALTER SYSTEM SET wal_level = logical, and restart the server.';
  END IF;
END
$do$;
DO $do$
DECLARE
  reader constant name := ${literal(reader)};
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = reader AND (rolreplication OR rolsuper)) THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rds_replication') THEN
    EXECUTE pg_catalog.format('GRANT rds_replication TO %I', reader);
  ELSE
    EXECUTE pg_catalog.format('ALTER ROLE %I REPLICATION', reader);
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE EXCEPTION 'You may not let the role % read replication slots.', reader USING HINT = pg_catalog.format(
    'Have an administrator run: ALTER ROLE %I REPLICATION;', reader);
END
$do$;
`;

/**
 * Since PostgreSQL 18 a publication can have stored generated columns, and leaves them out if it is not told otherwise. Then
 * no row can be updated or deleted whose replica identity has one, as FULL always does.
 */
const generatedColumns = (name: string): string => `
DO $do$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_publication p
              WHERE p.pubname = ${literal(name)} AND pg_catalog.to_jsonb(p) ->> 'pubgencols' = 'n') THEN
    EXECUTE pg_catalog.format('ALTER PUBLICATION %I SET (publish_generated_columns = stored)', ${literal(name)});
  END IF;
END
$do$;
`;

/**
 * The columns of an old row that lead to a key must be in the replica identity. An index that has them is cheaper than
 * FULL, which writes whole old rows into the WAL; no index is made here, because that would hold up writes. With FULL no row
 * can be updated or deleted that has a column which some publication leaves out; so then there is nothing but an index.
 */
const IDENTITIES = `
CREATE OR REPLACE FUNCTION pg_temp.vitrina_against_full(part oid, own_publication name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $function$
  SELECT coalesce(
    (SELECT format('no publication can have its virtual generated column %I', min(a.attname::text))
       FROM pg_attribute a WHERE a.attrelid = part AND a.attgenerated = 'v' AND NOT a.attisdropped HAVING count(*) > 0),
    (SELECT format('the publication %I leaves columns of it out', min(p.pubname::text))
       FROM (SELECT part UNION SELECT relid FROM pg_partition_ancestors(part)) AS above (oid)
       JOIN pg_class c ON c.oid = above.oid
      CROSS JOIN pg_publication p
       LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid
       LEFT JOIN pg_publication_namespace s ON s.pnpubid = p.oid AND s.pnnspid = c.relnamespace
      WHERE p.pubname <> own_publication AND (p.pubupdate OR p.pubdelete)
        AND (p.puballtables OR r.oid IS NOT NULL OR s.oid IS NOT NULL)
        AND (r.prattrs IS NOT NULL OR to_jsonb(p) ->> 'pubgencols' = 'n' AND EXISTS (
              SELECT FROM pg_attribute a WHERE a.attrelid = part AND a.attgenerated = 's' AND NOT a.attisdropped))
     HAVING count(*) > 0))
$function$;

CREATE OR REPLACE FUNCTION pg_temp.vitrina_identity(
  own_publication name, wanted_schema text, wanted_name text, wanted text[]
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  part record;
  chosen name;
BEGIN
  IF to_regclass(format('%I.%I', wanted_schema, wanted_name)) IS NULL THEN
    RAISE EXCEPTION 'There is no table %.', format('%I.%I', wanted_schema, wanted_name);
  END IF;
  FOR part IN ${TREE}
    SELECT DISTINCT c.oid, c.oid::regclass AS relation, c.relreplident AS identity,
           pg_temp.vitrina_against_full(c.oid, own_publication) AS against_full
      FROM tree t JOIN pg_class c ON c.oid = t.oid WHERE c.relkind = 'r' ORDER BY c.oid
  LOOP
    CONTINUE WHEN part.identity = 'f' AND part.against_full IS NULL;
    SELECT i.relname INTO chosen
      FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
     CROSS JOIN LATERAL (
       SELECT array_agg(a.attname::text) AS names, bool_and(a.attnotnull) AS never_null
         FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
         LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum AND a.attnum > 0
        WHERE k.n <= x.indnkeyatts
     ) AS of_key
     WHERE x.indrelid = part.oid AND x.indisunique AND x.indisvalid AND x.indimmediate AND x.indpred IS NULL
       AND x.indexprs IS NULL AND of_key.never_null AND wanted <@ of_key.names
     ORDER BY CASE part.identity WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END DESC,
              x.indnkeyatts, i.relname
     LIMIT 1;
    IF chosen IS NULL AND part.against_full IS NOT NULL THEN
      RAISE EXCEPTION 'With REPLICA IDENTITY FULL no row of % could be updated or deleted: %.', part.relation, part.against_full
        USING HINT = concat('It needs a unique index whose columns are NOT NULL, with ', array_to_string(wanted, ', '),
                            ' among them. Make one, and run this script again.');
    ELSIF chosen IS NULL THEN
      EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', part.relation);
    ELSIF NOT EXISTS (
      SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = part.oid AND i.relname = chosen
         AND CASE part.identity WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END
    ) THEN
      EXECUTE format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', part.relation, chosen);
    END IF;
  END LOOP;
END
$function$;
`;

function identityScript(publication: string, { schema, name, imageColumns }: RecordedTable): string {
  const columns = imageColumns.map((column) => literal(column.name)).join(", ");
  const names = [publication, schema, name].map(literal).join(", ");
  return `SELECT pg_temp.vitrina_identity(${names}, ARRAY[${columns}]::text[]);`;
}

const OPTIONS = "publish = 'insert, update, delete, truncate', publish_via_partition_root = false";

/**
 * A partitioned table is published as a whole where it has a primary key, because every partition to come has that, too, and
 * so a replica identity. Without one a new partition would be published before it has an identity, and no row of the whole
 * table could be updated or deleted until this script has run again. So there the partitions that exist are published, and a
 * new one is missing in the publication: the marts stop, and the application goes on.
 */
function wantedParts(tables: readonly PublishedName[]): string {
  const names = tables.map(
    ({ schema, name }) => `${literal(quoteTable({ schema, table: name }))}::pg_catalog.regclass`,
  );
  return `
    SELECT part.relid AS oid
      FROM pg_catalog.pg_class c
     CROSS JOIN LATERAL (
       SELECT c.relkind = 'p' AND NOT EXISTS (
                SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND x.indisprimary AND x.indimmediate AND x.indisvalid)
     ) AS of_table (lacks_key)
     CROSS JOIN LATERAL (
       SELECT c.oid WHERE NOT lacks_key
       UNION ALL
       SELECT t.relid FROM pg_catalog.pg_partition_tree(c.oid) AS t WHERE lacks_key AND t.isleaf AND t.relid <> c.oid
     ) AS part (relid)
     WHERE c.oid IN (${names.join(", ")})`;
}

function publicationScript(name: string, tables: readonly PublishedName[]): string {
  const publication = quoteIdentifier(name);
  const body = `
DECLARE
  wanted constant oid[] := ARRAY(SELECT DISTINCT p.oid FROM (${wantedParts(tables).trim()}) AS p ORDER BY p.oid);
  list constant text := (SELECT pg_catalog.string_agg(p.oid::pg_catalog.regclass::text, ', ') FROM pg_catalog.unnest(wanted) AS p (oid));
  part record;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = ${literal(name)}) THEN
    -- What was written while there was no publication cannot be decoded by most servers.
    PERFORM pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots
      WHERE slot_name = ${literal(name)} AND database = current_database();
    EXECUTE pg_catalog.concat('CREATE PUBLICATION ', ${literal(publication)}, ' FOR TABLE ' || list, ' WITH (', ${literal(OPTIONS)}, ')');
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = ${literal(name)} AND NOT pubviaroot
                    AND pubinsert AND pubupdate AND pubdelete AND pubtruncate) THEN
    ALTER PUBLICATION ${publication} SET (${OPTIONS});
  END IF;
  -- The slot never tells what a transaction wrote before its table was published, even if that ends later. So whoever
  -- is writing is waited for, as CREATE TRIGGER does.
  FOR part IN
    SELECT w.oid::pg_catalog.regclass AS relation FROM pg_catalog.unnest(wanted) AS w (oid)
     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
                        WHERE p.pubname = ${literal(name)} AND r.prrelid = w.oid)
  LOOP
    EXECUTE pg_catalog.format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', part.relation);
  END LOOP;
  IF list IS NOT NULL THEN
    EXECUTE pg_catalog.concat('ALTER PUBLICATION ', ${literal(publication)}, ' SET TABLE ', list);
    RETURN;
  END IF;
  FOR part IN
    SELECT r.prrelid::pg_catalog.regclass AS relation
      FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid WHERE p.pubname = ${literal(name)}
  LOOP
    EXECUTE pg_catalog.concat('ALTER PUBLICATION ', ${literal(publication)}, ' DROP TABLE ONLY ', part.relation);
  END LOOP;
END
`;
  const quote = dollarQuote(body);
  return `DO ${quote}${body}${quote};`;
}

/** A slot that the server has given up is of no use to anybody, and without a publication one would only fill the disk. */
const slotItself = (name: string): string => `
SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots
 WHERE slot_name = ${literal(name)} AND database = current_database() AND wal_status = 'lost';
SELECT pg_catalog.pg_create_logical_replication_slot(${literal(name)}, 'pgoutput')
 WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = ${literal(name)})
   AND EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = ${literal(name)});
`;
