import type { TestDatabase } from "./database.ts";

/** The schemas that the migrations make, as text that is the same on every server version. */
export async function dumpSchema(database: TestDatabase): Promise<string> {
  const sections = await Promise.all(QUERIES.map((query) => database.query(query)));
  return `${sections.map((rows) => rows.map(({ line }) => line).join("\n")).join("\n\n")}\n`;
}

const OURS = "n.nspname IN ('etl', 'analytics')";

const QUERIES = [
  `SELECT 'schema ' || n.nspname || coalesce(E'\\n' || (
       SELECT string_agg('  grant ' || a.privilege_type || ' to ' || r.rolname, E'\\n' ORDER BY r.rolname, a.privilege_type)
         FROM aclexplode(n.nspacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname LIKE 'vitrina\\_%'), '') AS line
     FROM pg_namespace n WHERE ${OURS} ORDER BY n.nspname`,
  `SELECT 'table ' || c.oid::regclass || E'\\n' || (
       SELECT string_agg('  ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
                || CASE WHEN a.attidentity <> '' THEN ' identity' ELSE '' END
                || CASE WHEN a.attgenerated <> '' THEN ' generated' ELSE '' END
                || coalesce(' default ' || trim(regexp_replace(pg_get_expr(d.adbin, d.adrelid), '\\s+', ' ', 'g')), ''), E'\\n' ORDER BY a.attnum)
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS line
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${OURS} AND c.relkind = 'r'
     ORDER BY c.oid::regclass::text`,
  `SELECT 'constraint ' || con.conrelid::regclass || ' ' || con.conname || ': ' || pg_get_constraintdef(con.oid) AS line
     FROM pg_constraint con JOIN pg_namespace n ON n.oid = con.connamespace
    WHERE ${OURS} AND con.contype <> 'n' ORDER BY con.conrelid::regclass::text, con.conname`,
  `SELECT pg_get_indexdef(i.indexrelid) AS line
     FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${OURS} ORDER BY 1`,
  `SELECT pg_get_triggerdef(t.oid) AS line
     FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${OURS} AND NOT t.tgisinternal ORDER BY 1`,
  `SELECT pg_get_functiondef(p.oid) AS line FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE ${OURS} ORDER BY p.proname`,
  `SELECT 'grant ' || a.privilege_type || ' on ' || c.oid::regclass || ' to ' || r.rolname AS line
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
     JOIN pg_roles r ON r.oid = a.grantee
    WHERE ${OURS} AND r.rolname LIKE 'vitrina\\_%' ORDER BY 1`,
  `SELECT 'grant ' || a.privilege_type || ' (' || string_agg(at.attname, ', ' ORDER BY at.attname) || ') on '
          || c.oid::regclass || ' to ' || r.rolname AS line
     FROM pg_attribute at JOIN pg_class c ON c.oid = at.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace,
          aclexplode(at.attacl) a JOIN pg_roles r ON r.oid = a.grantee
    WHERE ${OURS} AND r.rolname LIKE 'vitrina\\_%' GROUP BY a.privilege_type, c.oid, r.rolname ORDER BY 1`,
];
