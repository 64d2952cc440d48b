import { relationName } from "../domain/relation-name.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import type { FollowedTable, FollowPlan } from "./follow-plan.ts";

/** A statement that finds keys, and the table whose changes it is for. */
export interface StatementToExamine {
  /** `schema.table`. */
  readonly table: string;
  readonly statement: string;
}

/**
 * The statements that find keys, with the tables in place of their images: queries like any other, which the guard can
 * judge. A person may have written parts of them.
 */
export function statementsToExamine({ tables }: FollowPlan): readonly StatementToExamine[] {
  return tables.flatMap(({ schema, name, change }) => {
    if (change.kind !== "keys") return [];
    const statement = change.statement((wanted) => {
      const rows = imageOf(tables.find((one) => one.schema === wanted.schema && one.name === wanted.name));
      return { changed: rows, old: rows };
    });
    return { table: relationName({ schema, name }), statement };
  });
}

function imageOf(table: FollowedTable | undefined): string {
  if (table === undefined) return "";
  const columns = table.imageColumns.map(({ name }) => quoteIdentifier(name)).join(", ");
  return `(SELECT ${columns} FROM ${quoteIdentifier(table.schema)}.${quoteIdentifier(table.name)})`;
}
