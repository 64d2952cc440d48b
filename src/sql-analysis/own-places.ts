import type { TextPlace } from "../domain/text-place.ts";
import { nodesIn } from "../sql-guard/mentions.ts";
import { placeOf } from "../sql-guard/refusal.ts";
import { offsetOf, type Statement, statementsOf, textOf } from "../sql-guard/tree.ts";
import type { TableLeaf } from "./model.ts";
import type { QueryFacts } from "./query-facts.ts";

/** A name in FROM. */
interface Mention {
  readonly schema: string | undefined;
  readonly name: string;
  readonly alias: string;
  readonly offset: number;
}

/**
 * Where a table stands in the query as a person wrote it. The plan is made from what PostgreSQL prints of that, which has the
 * same tables in the same order, with names of its own only where two had one. Undefined: it is in a view, or not to be told.
 */
export async function ownPlaces(facts: QueryFacts): Promise<(leaf: TableLeaf) => TextPlace | undefined> {
  const [written, printed] = [await mentionsIn(facts.query), await mentionsIn(facts.definition)];
  return ({ relation, alias, offset, source }) => {
    if (source.view !== undefined || offset === undefined) return undefined;
    const isMeant = ({ schema, name }: Mention): boolean =>
      name === relation.name && (schema === undefined || schema === relation.schema);
    const [own, theirs] = [written.filter(isMeant), printed.filter(isMeant)];
    const counterpart =
      own.length === theirs.length ? own[theirs.findIndex((one) => one.offset === offset)] : undefined;
    const [named, another] = own.filter((one) => one.alias === alias);
    const isRenamed = counterpart !== undefined && alias.startsWith(`${counterpart.alias}_`);
    const found = counterpart?.alias === alias || isRenamed ? counterpart : another === undefined ? named : undefined;
    return found === undefined ? undefined : placeOf(facts.query, found.offset);
  };
}

/** From the beginning of the text to its end. Names of common table expressions are none of tables. */
async function mentionsIn(text: string): Promise<readonly Mention[]> {
  const statements = await statementsOf(text);
  const trees = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
  const nodes = trees.flatMap(({ node }) => [...nodesIn(node)]);
  const ctes = nodes.flatMap(({ kind, fields }) => (kind === "CommonTableExpr" ? [textOf(fields["ctename"])] : []));
  const mentions = nodes.flatMap(({ kind, fields }): Mention[] => {
    const [name, offset] = [textOf(fields["relname"]), offsetOf(fields)];
    const schema = fields["schemaname"] === undefined ? undefined : textOf(fields["schemaname"]);
    if (kind !== "RangeVar" || offset === undefined || (schema === undefined && ctes.includes(name))) return [];
    const alias = (fields["alias"] as { aliasname?: string } | undefined)?.aliasname ?? name;
    return [{ schema, name, alias, offset }];
  });
  return mentions.sort((one, other) => one.offset - other.offset);
}
