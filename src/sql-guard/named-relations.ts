import { findExcess } from "./limits.ts";
import { mentionsIn, type QualifiedName } from "./mentions.ts";
import { type Statement, statementsOf } from "./tree.ts";

/** The tables and views that a query names with their schemas, each once; none where it cannot be read. */
export async function namedRelations(query: string): Promise<readonly QualifiedName[]> {
  if ((await findExcess(query)) !== undefined) return [];
  const statements = await statementsOf(query);
  if (!Array.isArray(statements)) return [];
  const found = (statements as readonly Statement[]).flatMap(({ node }) => mentionsIn(node).relations);
  return [...new Map(found.map((one) => [`${one.schema}\0${one.name}`, one])).values()];
}
