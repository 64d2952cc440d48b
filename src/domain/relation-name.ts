/** How a table or view is called wherever one text stands for it: in what a source records, in positions, and for people. */

export interface SchemaAndName {
  readonly schema: string;
  readonly name: string;
}

/** Names with these are quoted, because `a.b.c` would be two tables: `a."b.c"` and `"a.b".c`. */
const AMBIGUOUS = /[."]/;

/** `schema.table`; quoted as in SQL where it would stand for another one, too. */
export function relationName({ schema, name }: SchemaAndName): string {
  if (!AMBIGUOUS.test(schema) && !AMBIGUOUS.test(name)) return `${schema}.${name}`;
  return [schema, name].map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
}

const WRITTEN = /^"((?:[^"]|"")*)"\."((?:[^"]|"")*)"$|^([^."]*)\.([^."]*)$/;

/** What `relationName` has made it from. */
export function relationNamed(written: string): SchemaAndName | undefined {
  const [, quotedSchema, quotedName, schema, name] = WRITTEN.exec(written) ?? [];
  if (schema !== undefined && name !== undefined) return { schema, name };
  if (quotedSchema === undefined || quotedName === undefined) return undefined;
  return { schema: quotedSchema.replaceAll('""', '"'), name: quotedName.replaceAll('""', '"') };
}
