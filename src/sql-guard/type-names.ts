/** Texts cast to these name objects of the database, or are parsed by libraries, or belong to PostgreSQL's internals. */
const REFUSED =
  /^(reg(?!config$|dictionary$)\w+|oid|oidvector|xid8?|cid|xml|refcursor|cstring|internal|aclitem|pg_\w+)$/;
const ALSO_REFUSED =
  /^(txid_snapshot|information_schema|any\w*|trigger|event_trigger|\w+_handler|unknown|void|opaque)$/;

/** The reason not to use a type, by the name it has in the query; `undefined` when it is an ordinary one. */
export function refusedType(names: readonly string[], allowedSchemas: readonly string[]): string | undefined {
  const [first = "", second] = names;
  if (names.length > 2) return "names a database";
  const schema = second === undefined ? "pg_catalog" : first;
  if (schema !== "pg_catalog") {
    return allowedSchemas.includes(schema)
      ? undefined
      : `is outside the allowed schemas (${allowedSchemas.join(", ")})`;
  }
  const name = second ?? first;
  return REFUSED.test(name) || ALSO_REFUSED.test(name) ? "belongs to PostgreSQL's internals" : undefined;
}
