import { type Fields, isObject, textOf } from "./tree.ts";

/** A common table expression, and how often it is used. */
export interface Cte {
  readonly isInlined: boolean;
}

interface CountedCte {
  readonly name: string;
  readonly materialized: unknown;
  references: number;
  isRecursive: boolean;
}

interface CountedCtes {
  readonly names: Map<string, CountedCte>;
  readonly outer: CountedCtes | undefined;
}

/** The common table expression that each node stands for: its definition, and every name in FROM that means it. */
export function resolveCtes(tree: Fields): ReadonlyMap<Fields, Cte> {
  const found = new Map<Fields, CountedCte>();
  visit(tree, undefined, found, undefined);
  const known = new Map([...new Set(found.values())].map((cte) => [cte, { isInlined: isInlined(cte) }]));
  return new Map([...found].map(([node, cte]) => [node, known.get(cte) ?? { isInlined: false }]));
}

/** As PostgreSQL decides; other reasons not to inline would only make planning simpler. */
function isInlined({ materialized, references, isRecursive }: CountedCte): boolean {
  if (isRecursive || materialized === "CTEMaterializeAlways") return false;
  return materialized === "CTEMaterializeNever" || references <= 1;
}

function visit(
  value: unknown,
  scope: CountedCtes | undefined,
  found: Map<Fields, CountedCte>,
  inside: CountedCte | undefined,
): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, scope, found, inside);
    return;
  }
  if (!isObject(value)) return;
  const { withClause, ...fields } = value;
  const inner = isObject(withClause) ? visitWith(withClause, scope, found, inside) : scope;
  for (const [kind, field] of Object.entries(fields)) {
    if (kind === "RangeVar" && isObject(field) && field["schemaname"] === undefined) {
      const cte = lookUp(textOf(field["relname"]), inner);
      if (cte === undefined) continue;
      found.set(field, cte);
      cte.references += 1;
      if (cte === inside) cte.isRecursive = true;
    } else {
      visit(field, inner, found, inside);
    }
  }
}

/** Each sees those before it, or all of them if recursive. */
function visitWith(
  { ctes, recursive }: Fields,
  outer: CountedCtes | undefined,
  found: Map<Fields, CountedCte>,
  inside: CountedCte | undefined,
): CountedCtes {
  const scope: CountedCtes = { names: new Map(), outer };
  const definitions = (Array.isArray(ctes) ? ctes : []).flatMap((node: { CommonTableExpr?: Fields }) => {
    const fields = node.CommonTableExpr;
    if (fields === undefined) return [];
    const { ctename, ctematerialized } = fields;
    return [
      { fields, cte: { name: textOf(ctename), materialized: ctematerialized, references: 0, isRecursive: false } },
    ];
  });
  if (recursive === true) for (const { cte } of definitions) scope.names.set(cte.name, cte);
  for (const { fields, cte } of definitions) {
    found.set(fields, cte);
    visit(fields["ctequery"], scope, found, recursive === true ? cte : inside);
    scope.names.set(cte.name, cte);
  }
  return scope;
}

function lookUp(name: string, scope: CountedCtes | undefined): CountedCte | undefined {
  return scope === undefined ? undefined : (scope.names.get(name) ?? lookUp(name, scope.outer));
}
