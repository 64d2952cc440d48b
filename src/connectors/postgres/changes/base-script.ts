import { CHANGES_OWNER, CHANGES_SCHEMA, CHANGES_VERSION } from "./recorder.ts";

/** The parts of the script that do not depend on the tables: the change table, its limits, and forgetting. */

const STORAGE = `(SELECT pg_catalog.string_agg(c.relfilenode::pg_catalog.text, ' ' ORDER BY c.oid) FROM pg_catalog.pg_class c
           WHERE c.oid IN ('vitrina.changes_1'::pg_catalog.regclass, 'vitrina.changes_2'::pg_catalog.regclass))`;

/** Part of a block: lets whoever runs the script act for the owner of the change table. */
export const ACTING = `
  IF NOT pg_catalog.pg_has_role('${CHANGES_OWNER}', 'USAGE') THEN
    BEGIN
      EXECUTE pg_catalog.format('GRANT ${CHANGES_OWNER} TO %I', current_user);
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE EXCEPTION 'You may not act for the role ${CHANGES_OWNER}, which owns the change table.' USING HINT =
        pg_catalog.format('Have an administrator run: GRANT ${CHANGES_OWNER} TO %I;', current_user);
    END;
  END IF;`;

/** Part of a block. */
export const OWN_SCHEMA = `
  IF EXISTS (SELECT FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
              WHERE n.nspname = '${CHANGES_SCHEMA}' AND r.rolname IS DISTINCT FROM '${CHANGES_OWNER}') THEN
    RAISE EXCEPTION 'The schema ${CHANGES_SCHEMA} belongs to somebody else than ${CHANGES_OWNER}.';
  END IF;`;

/** The role, the schema and the change table. */
export const BASE = `
DO $do$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '${CHANGES_OWNER}') THEN
    BEGIN
      CREATE ROLE ${CHANGES_OWNER} NOLOGIN;
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN
        NULL; -- somebody made it at the same moment, for another database of this server
      WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'You may not create the role that will own the change table.' USING HINT = pg_catalog.format(
          'Have an administrator run: CREATE ROLE ${CHANGES_OWNER} NOLOGIN; GRANT ${CHANGES_OWNER} TO %I;', current_user);
    END;
  END IF;
  ${ACTING.trim()}
  ${OWN_SCHEMA.trim()}
END
$do$;

CREATE SCHEMA IF NOT EXISTS ${CHANGES_SCHEMA} AUTHORIZATION ${CHANGES_OWNER};
SET LOCAL ROLE ${CHANGES_OWNER};

-- One row for each changed row: its old and new values, of the columns by which marts are found, as texts. Two parts take
-- turns, so that forgetting empties one of them instead of deleting rows. kind: r = a row, t = the table was truncated,
-- l = something changed that could not be recorded.
CREATE TABLE IF NOT EXISTS vitrina.changes (
  part smallint NOT NULL,
  number bigint NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  relation text NOT NULL,
  kind "char" NOT NULL,
  old jsonb,
  new jsonb,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY LIST (part);
-- Statistics that are behind make for plans that read all of it.
CREATE TABLE IF NOT EXISTS vitrina.changes_1 PARTITION OF vitrina.changes FOR VALUES IN (1)
  WITH (autovacuum_analyze_scale_factor = 0.02);
CREATE TABLE IF NOT EXISTS vitrina.changes_2 PARTITION OF vitrina.changes FOR VALUES IN (2)
  WITH (autovacuum_analyze_scale_factor = 0.02);

-- Sequences, because every session sees their values at once, whatever its snapshot: the number of the last change, the
-- number after which nothing is stored any more, and the part that is written.
CREATE SEQUENCE IF NOT EXISTS vitrina.change_number;
CREATE SEQUENCE IF NOT EXISTS vitrina.change_stop;
CREATE SEQUENCE IF NOT EXISTS vitrina.change_part MAXVALUE 2;

-- forgotten: rows that this snapshot shows may be gone.
CREATE TABLE IF NOT EXISTS vitrina.tables (
  relation text PRIMARY KEY,
  schema name NOT NULL,
  name name NOT NULL,
  recorder name NOT NULL,
  columns jsonb NOT NULL,
  body_md5 text NOT NULL,
  forgotten pg_snapshot
);

CREATE TABLE IF NOT EXISTS vitrina.state (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  version integer NOT NULL,
  mark uuid NOT NULL DEFAULT gen_random_uuid(),
  max_rows bigint NOT NULL CHECK (max_rows > 0),
  max_age interval NOT NULL,
  stop bigint NOT NULL,
  opened bigint NOT NULL DEFAULT 1,
  opened_at timestamptz NOT NULL DEFAULT now(),
  -- Of both parts, as forgetting has left it: if it is another one, somebody else has emptied a part.
  storage text
);

-- Asked first: both statements lock before they look whether there is anything to do, and would make this script wait for
-- whoever writes or reads changes, or the other way round.
DO $do$
BEGIN
  IF pg_catalog.to_regclass('vitrina.changes_by_relation') IS NULL THEN
    CREATE INDEX changes_by_relation ON vitrina.changes (relation, xid);
  END IF;
  IF pg_catalog.to_regclass('vitrina.status') IS NULL
     OR EXISTS (SELECT FROM vitrina.state WHERE version <> ${CHANGES_VERSION}) THEN
    CREATE OR REPLACE VIEW vitrina.status AS
      SELECT s.version, s.mark, s.max_rows, s.max_age, n.last_value AS newest,
             n.last_value > s.stop OR s.storage IS DISTINCT FROM ${STORAGE} AS is_full
        FROM vitrina.state s, vitrina.change_number n;
  END IF;
END
$do$;
`;

/**
 * The limits may be others than the last time. Where the old one was reached, it stays until everything is forgotten: whoever
 * looks must see that changes were left out. Nobody leaves one out while that is decided.
 */
export const limits = (maxRows: number, maxAgeHours: number): string => `
DO $do$
BEGIN
  IF EXISTS (SELECT FROM vitrina.state WHERE max_rows <> ${maxRows}) THEN
    LOCK TABLE vitrina.changes_1, vitrina.changes_2 IN SHARE ROW EXCLUSIVE MODE;
  END IF;
END
$do$;
INSERT INTO vitrina.state (version, max_rows, max_age, stop, storage)
VALUES (${CHANGES_VERSION}, ${maxRows}, interval '${maxAgeHours} hours', ${maxRows}, ${STORAGE})
ON CONFLICT (id) DO UPDATE
  SET version = excluded.version, max_rows = excluded.max_rows, max_age = excluded.max_age,
      stop = CASE WHEN (SELECT last_value FROM vitrina.change_number) > state.stop THEN state.stop
                  ELSE state.stop - state.max_rows + excluded.max_rows END,
      storage = coalesce(state.storage, excluded.storage)
  WHERE (state.version, state.max_rows, state.max_age) IS DISTINCT FROM (excluded.version, excluded.max_rows, excluded.max_age);
SELECT setval('vitrina.change_stop', greatest(stop, 1)) FROM vitrina.state;
SELECT setval('vitrina.change_part', last_value) FROM vitrina.change_part;
`;

/** Storing a change, for the triggers alone. */
export const STORING = `
-- Beyond the limit nothing is stored, and the number alone says so. The lock makes whoever raises the limit wait for this
-- transaction, whose change is in no part. A change takes one more number for each kilobyte of its values, so that long
-- ones reach the limit sooner. Its callers have set the search path.
CREATE OR REPLACE FUNCTION vitrina.store(relation text, kind "char", old jsonb, new jsonb) RETURNS void
LANGUAGE plpgsql AS $function$
DECLARE
  this bigint := nextval('vitrina.change_number');
BEGIN
  FOR kilobyte IN 1 .. (coalesce(pg_column_size(store.old), 0) + coalesce(pg_column_size(store.new), 0)) / 1000 LOOP
    this := nextval('vitrina.change_number');
  END LOOP;
  IF this > pg_sequence_last_value('vitrina.change_stop') THEN
    LOCK TABLE vitrina.changes_1, vitrina.changes_2 IN ROW EXCLUSIVE MODE;
    IF this > pg_sequence_last_value('vitrina.change_stop') THEN
      RETURN;
    END IF;
  END IF;
  IF pg_sequence_last_value('vitrina.change_part') = 1 THEN
    INSERT INTO vitrina.changes_1 (part, number, relation, kind, old, new)
    VALUES (1, this, store.relation, store.kind, store.old, store.new);
  ELSE
    INSERT INTO vitrina.changes_2 (part, number, relation, kind, old, new)
    VALUES (2, this, store.relation, store.kind, store.old, store.new);
  END IF;
END
$function$;

CREATE OR REPLACE FUNCTION vitrina.record_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  PERFORM vitrina.store(TG_ARGV[0], 't', NULL, NULL);
  RETURN NULL;
END
$function$;
`;

/** Forgetting, which Vitrina asks for, or the owner's own schedule. */
export const FORGETTING = `
-- Whether everything that the earlier snapshot shows is also shown by the later one.
CREATE OR REPLACE FUNCTION vitrina.sees(later pg_snapshot, earlier pg_snapshot) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $function$
  SELECT pg_snapshot_xmax(later) >= pg_snapshot_xmax(earlier)
     AND NOT EXISTS (SELECT FROM pg_snapshot_xip(later) AS running WHERE pg_visible_in_snapshot(running, earlier))
$function$;

-- The tables that have changes in a part, each with the oldest of its readers' positions that has seen all of them. is_held:
-- an older position has not, or none is known. ORDER BY makes sure of the index. Positions that have lost changes before hold nothing: they compare everything anyway.
CREATE OR REPLACE FUNCTION vitrina.readers_of(wanted smallint, seen jsonb)
RETURNS TABLE (relation text, covering pg_snapshot, is_held boolean)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $function$
  SELECT t.relation, found.covering, found.first_covering IS DISTINCT FROM 1
    FROM vitrina.tables t
   CROSS JOIN LATERAL (
     SELECT min(p.n) FILTER (WHERE p.covers) AS first_covering,
            (array_agg(p.snapshot ORDER BY p.n) FILTER (WHERE p.covers))[1] AS covering
       FROM (
         SELECT s.snapshot,
                row_number() OVER (ORDER BY pg_snapshot_xmax(s.snapshot),
                                            (SELECT count(*) FROM pg_snapshot_xip(s.snapshot)) DESC) AS n,
                (SELECT c.xid FROM vitrina.changes c
                  WHERE c.part = wanted AND c.relation = t.relation AND c.xid >= pg_snapshot_xmin(s.snapshot)
                    AND NOT pg_visible_in_snapshot(c.xid, s.snapshot)
                  ORDER BY c.xid DESC LIMIT 1) IS NULL AS covers
           FROM jsonb_to_recordset(seen) AS s (relation text, snapshot pg_snapshot)
          WHERE s.relation = t.relation AND (t.forgotten IS NULL OR vitrina.sees(s.snapshot, t.forgotten))
       ) AS p
   ) AS found
   WHERE (SELECT c.xid FROM vitrina.changes c WHERE c.part = wanted AND c.relation = t.relation
           ORDER BY c.xid DESC LIMIT 1) IS NOT NULL
$function$;

-- Empties the part that is not written, if every reader has seen it, or if the limit is reached; then lets the parts take
-- turns. seen: [{"relation": "schema.table", "snapshot": "…"}, …], the position of each reader of each table; without any, only
-- the limit counts. It waits for nobody: where a lock cannot be had within a moment, it answers 'busy', and the next call tries again.
CREATE OR REPLACE FUNCTION vitrina.forget(seen jsonb DEFAULT '[]') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $function$
DECLARE
  was vitrina.state;
  newest bigint;
  resting smallint;
  answer text := 'nothing to forget';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'vitrina.forget() must see the latest changes: call it in a transaction that is READ COMMITTED.';
  END IF;
  SELECT * INTO was FROM vitrina.state FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 'busy';
  END IF;
  SELECT n.last_value, 3 - p.last_value INTO newest, resting FROM vitrina.change_number n, vitrina.change_part p;
  IF newest > was.stop OR was.storage IS DISTINCT FROM ${STORAGE} THEN
    -- Changes were not stored, or are gone: whoever has not seen all up to now compares everything, so nothing is worth keeping.
    BEGIN
      LOCK TABLE vitrina.changes_1, vitrina.changes_2 IN ACCESS EXCLUSIVE MODE;
    EXCEPTION WHEN lock_not_available THEN
      RETURN 'busy';
    END;
    TRUNCATE vitrina.changes_1, vitrina.changes_2;
    UPDATE vitrina.tables SET forgotten = pg_current_snapshot();
    SELECT last_value INTO newest FROM vitrina.change_number;
    UPDATE vitrina.state SET stop = newest + max_rows, opened = newest + 1, opened_at = clock_timestamp(), storage = ${STORAGE};
    PERFORM setval('vitrina.change_stop', newest + was.max_rows);
    RETURN 'started over';
  END IF;
  IF EXISTS (SELECT FROM vitrina.changes c WHERE c.part = resting) THEN
    IF newest - (was.stop - was.max_rows) > was.max_rows / 2 OR was.opened_at < clock_timestamp() - was.max_age THEN
      answer := 'forgot at the limit';
    ELSE
      answer := 'forgot';
      IF EXISTS (SELECT FROM vitrina.readers_of(resting, seen) WHERE is_held) THEN
        RETURN 'kept for a reader';
      END IF;
    END IF;
    BEGIN
      EXECUTE format('LOCK TABLE vitrina.changes_%s IN ACCESS EXCLUSIVE MODE', resting);
    EXCEPTION WHEN lock_not_available THEN
      RETURN 'busy';
    END;
    -- Again, because nobody can leave out a change any more, nor add one to the part: it may have happened in the meantime.
    IF (SELECT last_value FROM vitrina.change_number) > was.stop THEN
      RETURN 'busy';
    END IF;
    IF answer = 'forgot' AND EXISTS (SELECT FROM vitrina.readers_of(resting, seen) WHERE is_held) THEN
      RETURN 'kept for a reader';
    END IF;
    UPDATE vitrina.tables t
       SET forgotten = CASE WHEN t.forgotten IS NULL OR vitrina.sees(r.covering, t.forgotten) THEN r.covering
                            WHEN vitrina.sees(t.forgotten, r.covering) THEN t.forgotten
                            ELSE pg_current_snapshot() END
      FROM (SELECT relation, coalesce(covering, pg_current_snapshot()) AS covering
              FROM vitrina.readers_of(resting, seen)) AS r
     WHERE r.relation = t.relation;
    EXECUTE format('TRUNCATE vitrina.changes_%s', resting);
    UPDATE vitrina.state SET stop = opened - 1 + max_rows, storage = ${STORAGE};
    PERFORM setval('vitrina.change_stop', was.opened - 1 + was.max_rows);
    RETURN answer;
  END IF;
  IF newest - was.opened + 1 >= was.max_rows / 4
     OR (newest >= was.opened AND was.opened_at < clock_timestamp() - was.max_age / 2) THEN
    PERFORM setval('vitrina.change_part', resting);
    UPDATE vitrina.state SET opened = newest + 1, opened_at = clock_timestamp();
    answer := 'took turns';
  END IF;
  RETURN answer;
END
$function$;
`;

/** The reader may look at what was recorded, and have it forgotten. */
export const grants = (reader: string): string => `
REVOKE ALL ON ALL TABLES IN SCHEMA vitrina FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA vitrina FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vitrina FROM PUBLIC;
GRANT USAGE ON SCHEMA vitrina TO ${reader};
GRANT SELECT ON vitrina.changes, vitrina.tables, vitrina.status TO ${reader};
GRANT EXECUTE ON FUNCTION vitrina.forget(jsonb) TO ${reader};
`;
