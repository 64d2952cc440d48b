/**
 * What the audit asks the catalogue. $1 are the oids it starts from. Everything is returned as text, so that it does
 * not matter how the session reads values.
 */

/** Objects with a smaller oid came with PostgreSQL itself. */
const FIRST_OWN_OID = 16_384;

/**
 * Relations, each with the one that led to it: a view reads what its rule names, a parent reads its children. What a
 * materialized view was made of ends there: reading it reads nothing but the rows that its owner put into it.
 */
const REACHED = `
  WITH RECURSIVE reached (relid, via) AS (
    SELECT start, NULL::oid FROM unnest($1::oid[]) AS start
    UNION
    SELECT step.relid, reached.relid
      FROM reached
     CROSS JOIN LATERAL (
       SELECT found[1]::oid AS relid
         FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class AND v.relkind <> 'm'
        CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':relid (\\d+)', 'g') AS found
        WHERE r.ev_class = reached.relid AND r.ev_type = '1'
       UNION
       SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = reached.relid
     ) AS step
     WHERE step.relid NOT IN (0, reached.relid)
  )`;

/** The view of the audit itself is not among them. */
export const RELATIONS_REACHED = `${REACHED}
  SELECT DISTINCT n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
         vn.nspname::text AS via_schema, v.relname::text AS via_name
    FROM reached
    JOIN pg_class c ON c.oid = reached.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN (pg_class v JOIN pg_namespace vn ON vn.oid = v.relnamespace)
           ON v.oid = reached.via AND v.relnamespace <> pg_my_temp_schema()
   WHERE c.relnamespace <> pg_my_temp_schema()
   ORDER BY 1, 2`;

/** Reading a materialized view runs nothing of its rule; reading any other view runs all of it. */
const RULES = `
  , rules AS (
    SELECT DISTINCT r.oid, r.ev_class, r.ev_action::text AS tree
      FROM reached JOIN pg_class c ON c.oid = reached.relid AND c.relkind = 'v'
      JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'
  )`;

/** How often the rule of each view names each relation, and how long the rule is. */
export const SIZES_OF_RULES = `${REACHED}${RULES}
  SELECT rules.ev_class::text AS view, named.relation, count(named.relation)::text AS times, length(rules.tree)::text AS length
    FROM rules LEFT JOIN LATERAL (
      SELECT found[1] AS relation FROM regexp_matches(rules.tree, ':rtekind 0 :relid (\\d+)', 'g') AS found
       WHERE found[1]::oid <> rules.ev_class
    ) AS named ON true
   GROUP BY rules.ev_class, rules.tree, named.relation`;

/**
 * OFFSET 0 makes PostgreSQL look things up one by one. It expects thousands of matches of every pattern, and would read
 * whole catalogues for the few that there are.
 */
const DEPENDENCIES =
  "SELECT refclassid, refobjid FROM pg_depend WHERE classid = 'pg_rewrite'::regclass AND objid = rules.oid OFFSET 0";

/** The fields of the stored tree that hold functions, and those that hold operators. */
const FUNCTION_FIELDS =
  ":(?:funcid|aggfnoid|winfnoid|opfuncid|hashfuncid|negfuncid|startInRangeFunc|endInRangeFunc) (\\d+)";
const OPERATOR_FIELDS = ":(?:opno|eqop|sortop|cycle_mark_neop) (\\d+)";
const OPERATOR_LISTS = ":opnos \\(o ([\\d ]+)\\)";

const FACTS = `
  n.nspname::text AS schema, p.proname::text AS name, p.provolatile::text AS volatility,
  (n.nspname = 'pg_catalog' AND p.oid < ${FIRST_OWN_OID})::text AS built_in,
  (SELECT string_agg(t.typname, ',') FROM unnest(p.proargtypes::oid[] || p.proallargtypes || p.prorettype) AS o
     JOIN pg_type t ON t.oid = o) AS types`;

export const FUNCTIONS_CALLED = `${REACHED}${RULES}
  , operators AS (
    SELECT ev_class, found[1]::oid AS oid FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${OPERATOR_FIELDS}', 'g') AS found
    UNION
    SELECT ev_class, one::oid FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${OPERATOR_LISTS}', 'g') AS found
     CROSS JOIN LATERAL regexp_split_to_table(found[1], ' ') AS one
  )
  , calls AS (
    SELECT ev_class, found[1]::oid AS oid FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${FUNCTION_FIELDS}', 'g') AS found
    UNION
    SELECT operators.ev_class, o.oprcode::oid FROM operators
     CROSS JOIN LATERAL (SELECT oprcode FROM pg_operator WHERE oid = operators.oid OFFSET 0) AS o
    UNION
    SELECT rules.ev_class, d.refobjid FROM rules
     CROSS JOIN LATERAL (${DEPENDENCIES}) AS d
     WHERE d.refclassid = 'pg_proc'::regclass
  )
  SELECT ${FACTS}, CASE WHEN c.relnamespace <> pg_my_temp_schema() THEN c.oid::regclass::text END AS via
    FROM calls CROSS JOIN LATERAL (SELECT * FROM pg_proc WHERE oid = calls.oid OFFSET 0) AS p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_class c ON c.oid = calls.ev_class
   ORDER BY 1, 2`;

/** A field may be a function of one argument: film.upper is upper(film). */
export const FUNCTIONS_BY_NAME = `
  SELECT ${FACTS}
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE n.nspname = 'pg_catalog'
     AND (p.proname = ANY ($1::text[]) OR
          p.proname = ANY ($2::text[]) AND 1 BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs)
   ORDER BY 2`;

/** Relations and functions are asked for by themselves; columns and constraints go with their tables. */
export const OTHER_OBJECTS = `${REACHED}${RULES}
  SELECT DISTINCT o.type AS kind, o.schema, o.identity, (t.typtype = 'b' AND t.typelem = 0)::text AS base_type
    FROM rules CROSS JOIN LATERAL (${DEPENDENCIES}) AS d
   CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) AS o
    LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
   WHERE d.refclassid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_constraint'::regclass)
     AND NOT (coalesce(o.schema, '') = 'pg_catalog' AND d.refobjid < ${FIRST_OWN_OID})
   ORDER BY 1, 3`;

/**
 * Types that the query can meet: those it names ($2 and $3 are their schemas and names), and those of the columns of its
 * relations; with what they are made of. A value is checked against a domain where it becomes one: where the domain is
 * named, where a row is made of JSON ($4), and where a text is read as a row, an array or a range of it. A column that
 * already holds one is only read.
 */
const TYPES = `
  , types AS (
    SELECT a.atttypid AS oid, $4::boolean AS is_made
      FROM reached JOIN pg_attribute a ON a.attrelid = reached.relid AND a.attnum > 0 AND NOT a.attisdropped
    UNION
    SELECT t.oid, true FROM unnest($2::text[], $3::text[]) AS named (schema, name)
      JOIN pg_namespace n ON n.nspname = named.schema JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = named.name
    UNION
    SELECT part.oid, types.is_made OR part.is_made
      FROM types
     CROSS JOIN LATERAL (
       SELECT a.atttypid AS oid, true AS is_made FROM pg_type t
         JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE t.oid = types.oid AND t.typtype = 'c'
       UNION ALL
       SELECT t.typelem, true FROM pg_type t WHERE t.oid = types.oid AND t.typelem <> 0
       UNION ALL
       SELECT t.typbasetype, false FROM pg_type t WHERE t.oid = types.oid AND t.typtype = 'd'
       UNION ALL
       SELECT r.rngsubtype, true FROM pg_range r WHERE types.oid IN (r.rngtypid, r.rngmultitypid)
       UNION ALL
       SELECT r.rngtypid, true FROM pg_range r WHERE r.rngmultitypid = types.oid
       UNION ALL
       SELECT c.casttarget, false FROM pg_cast c
        WHERE c.castsource = types.oid AND c.castmethod = 'b' AND types.oid >= ${FIRST_OWN_OID}
     ) AS part
  )`;

/**
 * Functions that somebody wrote and PostgreSQL calls without their being written anywhere: to cast a value (to_json looks
 * for one), to compare it (also inside rows, arrays and ranges), to make a range of it, to check a domain. A cast between
 * two types belongs to the younger one: everybody has integers. Functions in C came with an extension.
 */
export const OWN_CODE_OF_TYPES = `${REACHED}${TYPES}
  , families AS (
    SELECT types.oid, o.opcfamily FROM types JOIN pg_opclass o ON o.opcintype = types.oid
    UNION
    SELECT types.oid, o.opcfamily FROM types JOIN pg_range r ON r.rngtypid = types.oid JOIN pg_opclass o ON o.oid = r.rngsubopc
  )
  , checks AS (
    SELECT types.oid, c.conbin::text AS tree FROM types JOIN pg_constraint c ON c.contypid = types.oid
     WHERE types.is_made AND c.contype = 'c'
  )
  , calls AS (
    SELECT types.oid AS type, c.castfunc AS function, 'casts' AS does
      FROM types JOIN pg_cast c ON types.oid = greatest(c.castsource, c.casttarget)
    UNION
    SELECT families.oid, p.amproc::oid, 'compares' FROM families JOIN pg_amproc p ON p.amprocfamily = families.opcfamily
    UNION
    SELECT families.oid, o.oprcode::oid, 'compares' FROM families JOIN pg_amop a ON a.amopfamily = families.opcfamily
      JOIN pg_operator o ON o.oid = a.amopopr
    UNION
    SELECT types.oid, made, 'makes ranges of' FROM types JOIN pg_range r ON r.rngtypid = types.oid
     CROSS JOIN LATERAL unnest(ARRAY[r.rngcanonical::oid, r.rngsubdiff::oid]) AS made
    UNION
    SELECT checks.oid, found[1]::oid, 'checks'
      FROM checks CROSS JOIN LATERAL regexp_matches(tree, '${FUNCTION_FIELDS}', 'g') AS found
    UNION
    SELECT checks.oid, o.oprcode::oid, 'checks'
      FROM checks CROSS JOIN LATERAL regexp_matches(tree, '${OPERATOR_FIELDS}', 'g') AS found
      JOIN pg_operator o ON o.oid = found[1]::oid
  )
  SELECT DISTINCT calls.type::regtype::text AS type, p.oid::regproc::text AS function, calls.does
    FROM calls JOIN pg_proc p ON p.oid = calls.function
    JOIN pg_language l ON l.oid = p.prolang
   WHERE p.oid >= ${FIRST_OWN_OID} AND l.lanname NOT IN ('c', 'internal') OR calls.does = 'checks' AND p.provolatile = 'v'
   ORDER BY 1, 2, 3`;

/**
 * Expressions kept with the tables that are read, and the functions in them that somebody wrote. To plan a query, those of
 * indexes, statistics, constraints and partitions are simplified, which runs what is called with constants; row security
 * is run for each row. A policy does not count for roles that it is not meant for, or that are free of them: the reader,
 * and the owner of the view that reads the table. Functions in C came with an extension.
 */
export const OWN_CODE_OF_TABLES = `${REACHED}
  , trees AS (
    SELECT i.indrelid AS relid, 'an index' AS part, tree
      FROM pg_index i CROSS JOIN LATERAL (VALUES (i.indexprs), (i.indpred)) AS of_index (tree)
    UNION ALL
    SELECT s.stxrelid, 'statistics', s.stxexprs FROM pg_statistic_ext s
    UNION ALL
    SELECT c.conrelid, 'a constraint', c.conbin FROM pg_constraint c WHERE c.contype = 'c' AND c.conrelid <> 0
    UNION ALL
    SELECT p.partrelid, 'the partitioning', p.partexprs FROM pg_partitioned_table p
    UNION ALL
    SELECT p.polrelid, 'the row security', p.polqual FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid AND c.relrowsecurity
     WHERE p.polcmd IN ('r', '*') AND EXISTS (
       SELECT FROM reached LEFT JOIN pg_class v ON v.oid = reached.via AND v.relkind = 'v'
         JOIN pg_roles asking ON asking.rolname = current_user OR asking.oid = v.relowner
        WHERE reached.relid = p.polrelid AND NOT asking.rolsuper AND NOT asking.rolbypassrls
          AND EXISTS (SELECT FROM unnest(p.polroles) AS meant WHERE meant = 0 OR pg_has_role(asking.oid, meant, 'MEMBER')))
  )
  , kept AS (
    SELECT * FROM trees WHERE tree IS NOT NULL AND relid IN (SELECT relid FROM reached)
  )
  , calls AS (
    SELECT kept.relid, kept.part, kept.tree, found[1]::oid AS function
      FROM kept CROSS JOIN LATERAL regexp_matches(kept.tree::text, '${FUNCTION_FIELDS}', 'g') AS found
    UNION ALL
    SELECT kept.relid, kept.part, kept.tree, o.oprcode::oid
      FROM kept CROSS JOIN LATERAL regexp_matches(kept.tree::text, '${OPERATOR_FIELDS}', 'g') AS found
      JOIN pg_operator o ON o.oid = found[1]::oid
  )
  SELECT DISTINCT calls.relid::regclass::text AS relation, calls.part, pg_get_expr(calls.tree, calls.relid) AS expression,
         p.oid::regproc::text AS function, n.nspname::text AS schema, p.proname::text AS name,
         CASE WHEN l.lanname = 'sql' AND p.proconfig IS NULL AND NOT p.prosecdef
              THEN coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) END AS body
    FROM calls JOIN pg_proc p ON p.oid = calls.function JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_language l ON l.oid = p.prolang
   WHERE p.oid >= ${FIRST_OWN_OID} AND l.lanname NOT IN ('c', 'internal')
   ORDER BY 1, 2, 3, 4`;

/** Of the functions that have these names ($1 schemas, $2 names), whether any is neither PostgreSQL's own nor in C. */
export const IS_ANY_OWN = `
  SELECT EXISTS (
    SELECT FROM unnest($1::text[], $2::text[]) AS called (schema, name)
      JOIN pg_namespace n ON n.nspname = called.schema
      JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = called.name
      JOIN pg_language l ON l.oid = p.prolang
     WHERE p.oid >= ${FIRST_OWN_OID} AND l.lanname NOT IN ('c', 'internal'))::text AS own`;
