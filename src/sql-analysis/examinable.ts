import { quoteIdentifier } from "../postgres/identifiers.ts";
import type { FollowPlan } from "./follow-plan.ts";

/**
 * The statements that find keys, with the tables in place of their images: queries like any other, which the guard can
 * judge. A person may have written parts of them.
 */
export function statementsToExamine({ tables }: FollowPlan): readonly string[] {
  return tables.flatMap(({ change }) => {
    if (change.kind !== "keys") return [];
    return change.statement(({ schema, name }) => {
      const table = `(SELECT * FROM ${quoteIdentifier(schema)}.${quoteIdentifier(name)})`;
      return { changed: table, old: table };
    });
  });
}
