import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import { type RecordedTable, recordedName } from "./recorder.ts";
import type { ColumnFacts } from "./recording.ts";

/** How the texts of an image become values again: in the types and collations that the columns have now. */
export function imageValues(
  table: RecordedTable | undefined,
  columns: readonly ColumnFacts[],
  textOf: (name: string, index: number) => string,
): string {
  const values = (table?.imageColumns ?? []).map(({ name, type }, index) => {
    const facts = columns.find((column) => table && column.relation === recordedName(table) && column.name === name);
    const collation = facts?.ownCollation == null ? "" : ` COLLATE ${facts.ownCollation}`;
    return `(${textOf(name, index)})::${facts?.baseType ?? type}${collation} AS ${quoteIdentifier(name)}`;
  });
  return values.join(", ");
}
