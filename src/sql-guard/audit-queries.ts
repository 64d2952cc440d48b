/**
 * The audit's queries to the catalogue. $1 are the oids it starts from. Everything is returned as text, so that it does
 * not matter how the session decodes values.
 */

export type CatalogueRow = Readonly<Record<string, string | null>>;

/** Objects with a smaller oid came with PostgreSQL itself. */
export const FIRST_OWN_OID = 16_384;

/**
 * Whether row security of the table `reached.relid` runs for the asking role: not if no policy applies to the role, or
 * if it bypasses them.
 */
const POLICY_APPLIES = `
  p.polcmd IN ('r', '*')
  AND EXISTS (SELECT FROM pg_class c WHERE c.oid = p.polrelid AND c.relrowsecurity)
  AND EXISTS (
    SELECT FROM pg_roles role
     WHERE role.oid = reached.asking AND NOT role.rolsuper AND NOT role.rolbypassrls
       AND EXISTS (SELECT FROM unnest(p.polroles) AS meant WHERE meant = 0 OR pg_has_role(role.oid, meant, 'MEMBER')))`;

/**
 * Relations, each with the one that led to it, and the role that reads its rows: a view reads what its rule names, with
 * the rights of its owner, a parent reads its children, row security what its policies name. A
 * materialized view is not followed further: reading it only reads the rows that its owner put into it.
 */
const REACHED = `
  WITH RECURSIVE myself AS (SELECT oid FROM pg_roles WHERE rolname = current_user)
  , reached (relid, via, asking) AS (
    SELECT start, NULL::oid, myself.oid FROM unnest($1::oid[]) AS start CROSS JOIN myself
    UNION
    SELECT step.relid, reached.relid, step.asking
      FROM reached
     CROSS JOIN LATERAL (
       SELECT found[1]::oid AS relid,
              CASE WHEN EXISTS (SELECT FROM pg_options_to_table(v.reloptions) AS o
                                 WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)
                   THEN (SELECT oid FROM myself) ELSE v.relowner END AS asking
         FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class AND v.relkind <> 'm'
        CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':relid (\\d+)', 'g') AS found
        WHERE r.ev_class = reached.relid AND r.ev_type = '1'
       UNION
       SELECT i.inhrelid, reached.asking FROM pg_inherits i WHERE i.inhparent = reached.relid
       UNION
       SELECT found[1]::oid, reached.asking
         FROM pg_policy p CROSS JOIN LATERAL regexp_matches(p.polqual::text, ':relid (\\d+)', 'g') AS found
        WHERE p.polrelid = reached.relid AND ${POLICY_APPLIES}
     ) AS step
     WHERE step.relid NOT IN (0, reached.relid)
  )`;

/** Without the audit's own view. */
export const RELATIONS_REACHED = `${REACHED}
  SELECT DISTINCT n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
         vn.nspname::text AS via_schema, v.relname::text AS via_name
    FROM reached
    JOIN pg_class c ON c.oid = reached.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN (pg_class v JOIN pg_namespace vn ON vn.oid = v.relnamespace)
           ON v.oid = reached.via AND v.relnamespace <> pg_my_temp_schema()
   WHERE c.relnamespace <> pg_my_temp_schema()
   ORDER BY 1, 2`;

/**
 * What is run for each row: the rules of views, though not those of materialized ones, and row security.
 */
const RULES = `
  , rules AS (
    SELECT DISTINCT r.oid, r.ev_class, false AS is_policy, r.ev_action::text AS tree
      FROM reached JOIN pg_class c ON c.oid = reached.relid AND c.relkind = 'v'
      JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'
    UNION ALL
    SELECT DISTINCT p.oid, p.polrelid, true, p.polqual::text
      FROM reached JOIN pg_policy p ON p.polrelid = reached.relid
     WHERE p.polqual IS NOT NULL AND ${POLICY_APPLIES}
  )`;

/** How often the rule of each view names each relation, and how long the rule is. */
export const SIZES_OF_RULES = `${REACHED}${RULES}
  SELECT rules.ev_class::text AS view, named.relation, count(named.relation)::text AS times, length(rules.tree)::text AS length
    FROM rules LEFT JOIN LATERAL (
      SELECT found[1] AS relation FROM regexp_matches(rules.tree, ':rtekind 0 :relid (\\d+)', 'g') AS found
       WHERE found[1]::oid <> rules.ev_class
    ) AS named ON true
   WHERE NOT rules.is_policy
   GROUP BY rules.ev_class, rules.tree, named.relation`;

/**
 * OFFSET 0 makes PostgreSQL look things up one by one. It expects thousands of matches of every pattern, and would
 * otherwise read whole catalogues for the few that there are.
 */
const DEPENDENCIES = `SELECT refclassid, refobjid FROM pg_depend
  WHERE classid = CASE WHEN rules.is_policy THEN 'pg_policy'::regclass ELSE 'pg_rewrite'::regclass END AND objid = rules.oid
  OFFSET 0`;

/** The fields of the stored tree that hold functions, and those that hold operators. */
const FUNCTION_FIELDS =
  ":(?:funcid|aggfnoid|winfnoid|opfuncid|hashfuncid|negfuncid|startInRangeFunc|endInRangeFunc) (\\d+)";
const OPERATOR_FIELDS = ":(?:opno|eqop|sortop|cycle_mark_neop) (\\d+)";
const OPERATOR_LISTS = ":opnos \\(o ([\\d ]+)\\)";

/** Functions in C came with an extension, which a superuser installed. */
const IS_IN_C = "EXISTS (SELECT FROM pg_language l WHERE l.oid = p.prolang AND l.lanname IN ('c', 'internal'))";

const FACTS = `
  n.nspname::text AS schema, p.proname::text AS name, p.provolatile::text AS volatility,
  (n.nspname = 'pg_catalog' AND p.oid < ${FIRST_OWN_OID})::text AS built_in,
  (SELECT string_agg(t.typname, ',') FROM unnest(p.proargtypes::oid[] || p.proallargtypes || p.prorettype) AS o
     JOIN pg_type t ON t.oid = o) AS types`;

export const FUNCTIONS_CALLED = `${REACHED}${RULES}
  , operators AS (
    SELECT ev_class, is_policy, found[1]::oid AS oid
      FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${OPERATOR_FIELDS}', 'g') AS found
    UNION
    SELECT ev_class, is_policy, one::oid FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${OPERATOR_LISTS}', 'g') AS found
     CROSS JOIN LATERAL regexp_split_to_table(found[1], ' ') AS one
  )
  , calls AS (
    SELECT ev_class, is_policy, found[1]::oid AS oid
      FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${FUNCTION_FIELDS}', 'g') AS found
    UNION
    SELECT operators.ev_class, operators.is_policy, o.oprcode::oid FROM operators
     CROSS JOIN LATERAL (SELECT oprcode FROM pg_operator WHERE oid = operators.oid OFFSET 0) AS o
    UNION
    SELECT rules.ev_class, rules.is_policy, d.refobjid FROM rules
     CROSS JOIN LATERAL (${DEPENDENCIES}) AS d
     WHERE d.refclassid = 'pg_proc'::regclass
  )
  SELECT ${FACTS}, CASE WHEN c.relnamespace <> pg_my_temp_schema() THEN c.oid::regclass::text END AS via,
         calls.is_policy::text AS is_policy, ${IS_IN_C}::text AS in_c
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

/**
 * Relations and functions have their own queries; columns and constraints go with their tables. The server names the schema
 * as SQL would write it, with quotes where it needs them; it is compared without.
 */
export const OTHER_OBJECTS = `${REACHED}${RULES}
  SELECT DISTINCT o.type AS kind, (parse_ident(o.schema))[1] AS schema, o.identity, (t.typtype = 'b' AND t.typelem = 0)::text AS base_type
    FROM rules CROSS JOIN LATERAL (${DEPENDENCIES}) AS d
   CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) AS o
    LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
   WHERE NOT rules.is_policy
     AND d.refclassid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_constraint'::regclass)
     AND NOT (coalesce(o.schema, '') = 'pg_catalog' AND d.refobjid < ${FIRST_OWN_OID})
   ORDER BY 1, 3`;

/** Expressions stored with the tables that are read. Planning a query simplifies them, which runs calls with only constants. */
const KEPT = `
  , kept AS (
    SELECT * FROM (
      SELECT i.indrelid AS relid, 'an index' AS part, tree
        FROM pg_index i CROSS JOIN LATERAL (VALUES (i.indexprs), (i.indpred)) AS of_index (tree)
      UNION ALL
      SELECT s.stxrelid, 'statistics', s.stxexprs FROM pg_statistic_ext s
      UNION ALL
      SELECT c.conrelid, 'a constraint', c.conbin FROM pg_constraint c WHERE c.contype = 'c' AND c.conrelid <> 0
      UNION ALL
      SELECT p.partrelid, 'the partitioning', p.partexprs FROM pg_partitioned_table p
    ) AS trees
    WHERE tree IS NOT NULL AND relid IN (SELECT relid FROM reached)
  )`;

/** The fields of the stored tree that hold types to which a value is converted. */
const TYPE_FIELDS = ":(?:consttype|resulttype|typid|row_typeid|array_typeid) (\\d+)";
const TYPE_LISTS = ":(?:funccoltypes|coltypes) \\(o ([\\d ]+)\\)";

/** Types that did not come with PostgreSQL, and that rules name; a dependency may be one that no field of the tree shows. */
export const TYPES_NAMED = `${REACHED}${RULES}
  , named AS (
    SELECT found[1]::oid AS oid FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${TYPE_FIELDS}', 'g') AS found
    UNION
    SELECT one::oid FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${TYPE_LISTS}', 'g') AS found
     CROSS JOIN LATERAL regexp_split_to_table(found[1], ' ') AS one
    UNION
    SELECT d.refobjid FROM rules CROSS JOIN LATERAL (${DEPENDENCIES}) AS d WHERE d.refclassid = 'pg_type'::regclass
  )
  SELECT oid::text AS oid FROM named WHERE oid >= ${FIRST_OWN_OID} ORDER BY named.oid`;

/** What computes the virtual columns of the tables that are read. */
export const FUNCTIONS_OF_COLUMNS = `${REACHED}
  SELECT DISTINCT ${FACTS}
    FROM reached
    JOIN pg_attribute a ON a.attrelid = reached.relid AND a.attgenerated = 'v' AND NOT a.attisdropped
    JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   CROSS JOIN LATERAL regexp_matches(d.adbin::text, '${FUNCTION_FIELDS}', 'g') AS found
    JOIN pg_proc p ON p.oid = found[1]::oid JOIN pg_namespace n ON n.oid = p.pronamespace`;

/** Makes rows of a type that is not named: that of its first argument. */
export const MAKES_ROWS = "^jsonb?_populate_record(set)?(_valid)?$";

/**
 * Types that the query can encounter: those it names ($2 and $3 are their schemas and names), those of the columns of its
 * relations, and those that their views, row security, indexes and the like work on; with what they are made of. A value
 * is checked against a domain where it becomes one: where the domain is named, where a row is made of JSON or an array of
 * columns ($4), and where a text is read as a row, an array or a range of it. A column that already holds one is only read.
 */
const TYPES = `
  , making AS (
    SELECT $4::boolean OR EXISTS (
      SELECT FROM rules JOIN pg_proc p ON p.pronamespace = 'pg_catalog'::regnamespace AND p.proname ~ '${MAKES_ROWS}'
       WHERE rules.tree ~ (':funcid ' || p.oid || ' ')) AS rows
  )
  , types AS (
    SELECT a.atttypid AS oid, making.rows AS is_made
      FROM reached JOIN pg_attribute a ON a.attrelid = reached.relid AND a.attnum > 0 AND NOT a.attisdropped CROSS JOIN making
    UNION
    SELECT t.oid, true FROM unnest($2::text[], $3::text[]) AS named (schema, name)
      JOIN pg_namespace n ON n.nspname = named.schema JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = named.name
    UNION
    SELECT found[1]::oid, true FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${TYPE_FIELDS}', 'g') AS found
    UNION
    SELECT one::oid, true FROM rules CROSS JOIN LATERAL regexp_matches(tree, '${TYPE_LISTS}', 'g') AS found
     CROSS JOIN LATERAL regexp_split_to_table(found[1], ' ') AS one
    UNION
    SELECT found[1]::oid, false FROM kept CROSS JOIN LATERAL regexp_matches(tree::text, '${TYPE_FIELDS}', 'g') AS found
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
  )
  , met AS (
    SELECT oid, is_made FROM types
    UNION
    SELECT c.reltype, false FROM reached JOIN pg_class c ON c.oid = reached.relid
    UNION
    SELECT t.typarray, false FROM pg_type t
     WHERE t.typarray <> 0 AND (t.oid IN (SELECT oid FROM types) OR t.typrelid IN (SELECT relid FROM reached))
  )`;

/**
 * User-defined functions that PostgreSQL calls although the query does not name them: to cast a value (to_json looks
 * for one), to compare it (also inside rows, arrays and ranges), to make a range of it, to check a domain; in such a check
 * also PostgreSQL's own. A cast between two types belongs to the younger one: everybody has integers.
 */
export const OWN_CODE_OF_TYPES = `${REACHED}${RULES}${KEPT}${TYPES}
  , families AS (
    SELECT met.oid, o.opcfamily FROM met JOIN pg_opclass o ON o.opcintype = met.oid
    UNION
    SELECT met.oid, o.opcfamily FROM met JOIN pg_range r ON r.rngtypid = met.oid JOIN pg_opclass o ON o.oid = r.rngsubopc
  )
  , checks AS (
    SELECT met.oid, c.conbin::text AS tree FROM met JOIN pg_constraint c ON c.contypid = met.oid
     WHERE met.is_made AND c.contype = 'c'
  )
  , calls AS (
    SELECT met.oid AS type, c.castfunc AS function, 'casts' AS does
      FROM met JOIN pg_cast c ON met.oid = greatest(c.castsource, c.casttarget)
    UNION
    SELECT families.oid, p.amproc::oid, 'compares' FROM families JOIN pg_amproc p ON p.amprocfamily = families.opcfamily
    UNION
    SELECT families.oid, o.oprcode::oid, 'compares' FROM families JOIN pg_amop a ON a.amopfamily = families.opcfamily
      JOIN pg_operator o ON o.oid = a.amopopr
    UNION
    SELECT met.oid, made, 'makes ranges of' FROM met JOIN pg_range r ON r.rngtypid = met.oid
     CROSS JOIN LATERAL unnest(ARRAY[r.rngcanonical::oid, r.rngsubdiff::oid]) AS made
    UNION
    SELECT checks.oid, found[1]::oid, 'checks'
      FROM checks CROSS JOIN LATERAL regexp_matches(tree, '${FUNCTION_FIELDS}', 'g') AS found
    UNION
    SELECT checks.oid, o.oprcode::oid, 'checks'
      FROM checks CROSS JOIN LATERAL regexp_matches(tree, '${OPERATOR_FIELDS}', 'g') AS found
      JOIN pg_operator o ON o.oid = found[1]::oid
  )
  SELECT DISTINCT calls.type::regtype::text AS type, p.oid::regproc::text AS function, calls.does, ${FACTS}
    FROM calls JOIN pg_proc p ON p.oid = calls.function JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE p.oid >= ${FIRST_OWN_OID} AND NOT ${IS_IN_C} OR p.oid < ${FIRST_OWN_OID} AND calls.does = 'checks'
   ORDER BY 1, 2, 3`;

/** User-defined functions in what is stored with the tables. */
export const OWN_CODE_OF_TABLES = `${REACHED}${KEPT}
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
   WHERE p.oid >= ${FIRST_OWN_OID} AND NOT ${IS_IN_C}
   ORDER BY 1, 2, 3, 4`;

/** Of the functions that have these names ($1 schemas, $2 names), whether any is neither PostgreSQL's own nor in C. */
export const IS_ANY_OWN = `
  SELECT EXISTS (
    SELECT FROM unnest($1::text[], $2::text[]) AS called (schema, name)
      JOIN pg_namespace n ON n.nspname = called.schema
      JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = called.name
     WHERE p.oid >= ${FIRST_OWN_OID} AND NOT ${IS_IN_C})::text AS own`;
