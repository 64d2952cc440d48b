/** Quotes a name so that PostgreSQL takes it literally, whatever it contains. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteLiteral(text: string): string {
  return text.includes("\\")
    ? ` E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`
    : `'${text.replaceAll("'", "''")}'`;
}

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

export function quoteTable(table: TableName): string {
  return `${quoteIdentifier(table.schema)}.${quoteIdentifier(table.table)}`;
}
