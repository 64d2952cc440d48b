import { findExcess } from "../sql-guard/limits.ts";
import { isObject, type Statement, statementsOf } from "../sql-guard/tree.ts";
import type { QueryBlock } from "./model.ts";
import { selectOf } from "./names.ts";
import type { ParsedText } from "./parsed-text.ts";
import type { QueryFacts, RelationFacts } from "./query-facts.ts";
import { QueryReader, TooManyPlaces } from "./read-query.ts";
import { TOO_MUCH_WORK, tableLabel } from "./sentences.ts";
import { TooMuchWork, type WorkBudget } from "./work.ts";

/** Reads a query and its views, as PostgreSQL prints them. */

/** The blocks of the query, with its views put in their places; or why it cannot be read. */
export async function readQuery(
  facts: QueryFacts,
  budget: WorkBudget,
): Promise<{ block: QueryBlock; reader: QueryReader } | { readonly why: string }> {
  const main = await parsed(facts.definition, undefined);
  if (main === undefined) return { why: "The query, as PostgreSQL prints it, cannot be read." };
  const views = new Map<RelationFacts, ParsedText>();
  for (const relation of facts.relations) {
    if (relation.kind !== "v") continue;
    const view = await parsed(relation.definition ?? "", relation);
    if (view === undefined)
      return { why: `The view ${tableLabel(relation)}, as PostgreSQL prints it, cannot be read.` };
    views.set(relation, view);
  }
  const reader = new QueryReader(facts, views);
  try {
    const block = budget.take(() => reader.read(main));
    const unseen = [main, ...views.values()].some((text) => hasUnseenSelect(text, reader));
    if (unseen) return { why: "The query has a subquery at a place that cannot be followed." };
    return { block, reader };
  } catch (error) {
    if (error instanceof TooMuchWork) return { why: TOO_MUCH_WORK };
    if (!(error instanceof TooManyPlaces)) throw error;
    return { why: "The query uses its views and common table expressions in too many places." };
  }
}

async function parsed(text: string, view: RelationFacts | undefined): Promise<ParsedText | undefined> {
  if ((await findExcess(text)) !== undefined) return undefined;
  const statements = await statementsOf(text);
  const [statement] = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
  return statement === undefined ? undefined : { select: selectOf(statement.node), source: { text, view } };
}

/** A SELECT that was not turned into a block may read tables; a common table expression that nobody uses does not count. */
function hasUnseenSelect({ select }: ParsedText, reader: QueryReader): boolean {
  // A view that is reached only by a policy, for example.
  return reader.visited.has(select) && isUnseenIn(select, reader);
}

function isUnseenIn(value: unknown, reader: QueryReader): boolean {
  if (Array.isArray(value)) return value.some((item) => isUnseenIn(item, reader));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([kind, inner]) => {
    if (kind === "SelectStmt" && isObject(inner) && !reader.visited.has(inner)) return true;
    const isUnused = kind === "CommonTableExpr" && isObject(inner) && !reader.visited.has(selectOf(inner["ctequery"]));
    return !isUnused && isUnseenIn(inner, reader);
  });
}
