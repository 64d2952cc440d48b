import { ACTING, OWN_SCHEMA } from "./base-script.ts";
import { CHANGES_OWNER, CHANGES_SCHEMA } from "./recorder.ts";

/** AFTER INSERT OR UPDATE OR DELETE FOR EACH ROW, and AFTER TRUNCATE, as `pg_trigger.tgtype` has them. */
const ROW_TRIGGER = 29;
const TRUNCATE_TRIGGER = 32;

/** The table, its partitions, and the tables that inherit from it; `is_root`: it gets its row trigger from nobody. */
export const TREE = `
  WITH RECURSIVE tree (oid, is_root) AS (
    SELECT c.oid, true FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = wanted_schema AND c.relname = wanted_name
    UNION
    SELECT i.inhrelid, NOT c.relispartition
      FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
  )`;

/**
 * Temporary functions, which the rest of the script calls. A trigger that is as it should be is left alone, because
 * Vitrina takes a new one for a gap. For that reason it is recreated where columns are no longer recorded, or where somebody
 * has replaced its function: meanwhile changes may be missing. Where columns are added, only the function is replaced; what a
 * transaction has changed of them before is not recorded, so that has to be committed before anybody trusts the record.
 */
export const ATTACHING = `
CREATE OR REPLACE FUNCTION pg_temp.vitrina_before(wanted text, new_columns jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  found record;
BEGIN
  FOR found IN
    SELECT c.oid::regclass AS relation
      FROM vitrina.tables t
      JOIN pg_namespace n ON n.nspname = t.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.name
     WHERE t.relation = wanted AND NOT (t.columns -> 'read') @> (new_columns -> 'read')
  LOOP
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', found.relation);
  END LOOP;
  FOR found IN
    SELECT g.tgname, g.tgrelid::regclass AS relation
      FROM vitrina.tables t
      JOIN pg_namespace n ON n.nspname = '${CHANGES_SCHEMA}'
      JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = t.recorder
      JOIN pg_trigger g ON g.tgfoid = p.oid AND g.tgparentid = 0
     WHERE t.relation = wanted
       AND NOT ((new_columns -> 'image') @> (t.columns -> 'image') AND (new_columns -> 'read') @> (t.columns -> 'read')
                AND md5(p.prosrc) = t.body_md5)
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.relation);
  END LOOP;
END
$function$;

CREATE OR REPLACE FUNCTION pg_temp.vitrina_attach(
  wanted text, wanted_schema text, wanted_name text, recorder text, row_trigger text, truncate_trigger text
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  part record;
  is_equal boolean;
BEGIN
  IF to_regclass(format('%I.%I', wanted_schema, wanted_name)) IS NULL THEN
    RAISE EXCEPTION 'There is no table %.', format('%I.%I', wanted_schema, wanted_name);
  END IF;
  FOR part IN ${TREE} SELECT t.oid, t.oid::regclass AS relation, bool_or(t.is_root) AS is_root FROM tree t GROUP BY t.oid ORDER BY t.oid LOOP
    SELECT g.tgfoid = format('vitrina.%I()', recorder)::regprocedure AND g.tgtype = ${ROW_TRIGGER} AND g.tgqual IS NULL
           AND g.tgattr = ''::int2vector AND g.tgnargs = 0 AND g.tgconstraint = 0
      INTO is_equal FROM pg_trigger g WHERE g.tgrelid = part.oid AND g.tgname = row_trigger;
    IF is_equal IS DISTINCT FROM true AND part.is_root THEN
      IF is_equal IS NOT NULL THEN
        EXECUTE format('DROP TRIGGER %I ON %s', row_trigger, part.relation);
      END IF;
      EXECUTE format('CREATE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION vitrina.%I()',
                     row_trigger, part.relation, recorder);
    END IF;
    SELECT g.tgfoid = 'vitrina.record_truncate()'::regprocedure AND g.tgtype = ${TRUNCATE_TRIGGER} AND g.tgqual IS NULL
           AND g.tgargs = convert_to(wanted, getdatabaseencoding()) || decode('00', 'hex')
      INTO is_equal FROM pg_trigger g WHERE g.tgrelid = part.oid AND g.tgname = truncate_trigger;
    IF is_equal IS DISTINCT FROM true AND (SELECT relkind <> 'f' FROM pg_class WHERE oid = part.oid) THEN
      IF is_equal IS NOT NULL THEN
        EXECUTE format('DROP TRIGGER %I ON %s', truncate_trigger, part.relation);
      END IF;
      EXECUTE format('CREATE TRIGGER %I AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION vitrina.record_truncate(%L)',
                     truncate_trigger, part.relation, wanted);
    END IF;
  END LOOP;
  -- Also where session_replication_role is replica.
  FOR part IN ${TREE}
    SELECT t.oid::regclass AS relation, g.tgname FROM tree t JOIN pg_trigger g ON g.tgrelid = t.oid
     WHERE g.tgname IN (row_trigger, truncate_trigger) AND g.tgenabled <> 'A' GROUP BY t.oid, g.tgname ORDER BY t.oid
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', part.relation, part.tgname);
  END LOOP;
  -- PostgreSQL gives the next partition its trigger as whoever makes it, who must be allowed to execute the function. To be
  -- the trigger of another table it would have to be named, for which an owner lacks the schema.
  FOR part IN ${TREE}
    SELECT DISTINCT c.relowner::regrole AS owner FROM tree t JOIN pg_class c ON c.oid = t.oid
     WHERE c.relkind = 'p' AND NOT has_function_privilege(c.relowner, format('vitrina.%I()', recorder), 'EXECUTE')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION vitrina.%I() TO %s', recorder, part.owner);
  END LOOP;
END
$function$;
`;

/**
 * Takes a single table out, as it is recorded: its triggers wherever they are by now (the table may have another name, and a
 * partition may have been taken out of it), its function, and its entry, without which nothing is kept for it. Whoever had
 * followed it and comes back finds other triggers, and compares everything. Nothing is done where all of it is gone already.
 */
export const DETACHING = `
CREATE OR REPLACE FUNCTION pg_temp.vitrina_detach(wanted text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  found record;
  own_recorder name;
BEGIN
  ${OWN_SCHEMA.trim()}
  IF to_regclass('vitrina.tables') IS NULL THEN
    RETURN;
  END IF;
  ${ACTING.trim()}
  SELECT t.recorder INTO own_recorder FROM vitrina.tables t WHERE t.relation = wanted;
  FOR found IN
    SELECT g.tgname, g.tgrelid::regclass AS relation
      FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = '${CHANGES_SCHEMA}' AND g.tgparentid = 0
       AND (p.proname = own_recorder
            OR p.proname = 'record_truncate' AND g.tgargs = convert_to(wanted, getdatabaseencoding()) || decode('00', 'hex'))
     ORDER BY g.tgrelid, g.tgname
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.relation);
  END LOOP;
  -- Until the end of the transaction.
  SET LOCAL ROLE ${CHANGES_OWNER};
  DELETE FROM vitrina.tables t WHERE t.relation = wanted;
  IF own_recorder IS NOT NULL THEN
    EXECUTE format('DROP FUNCTION IF EXISTS vitrina.%I()', own_recorder);
  END IF;
END
$function$;
`;

export const REMOVAL = `
DO $do$
DECLARE
  found record;
BEGIN
  ${OWN_SCHEMA.trim()}
  FOR found IN
    SELECT g.tgname, g.tgrelid::regclass AS relation
      FROM pg_catalog.pg_trigger g
      JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
      JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = '${CHANGES_SCHEMA}' AND g.tgparentid = 0
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.relation);
  END LOOP;
END
$do$;
DROP SCHEMA IF EXISTS ${CHANGES_SCHEMA} CASCADE;
`;
