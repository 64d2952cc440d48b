import { type Fields, isObject, namesIn, textOf } from "./tree.ts";

export interface QualifiedName {
  readonly schema: string;
  readonly name: string;
}

/** The names that a query uses, anywhere in it. */
export interface Mentions {
  readonly relations: readonly QualifiedName[];
  readonly types: readonly QualifiedName[];
  readonly functions: readonly string[];
  /** Columns, and functions that are written like columns. */
  readonly fields: readonly string[];
  /** Columns become an array, which texts are then read as: `ARRAY[code] = '{x}'`. */
  readonly makesArrays: boolean;
}

/** With these, a text becomes a value of a column's type without that type being named. */
const MAKES_ARRAYS = /^(array_|percentile_disc$|width_bucket$|lag$|lead$)/;

export function mentionsIn(tree: Fields): Mentions {
  const nodes = [...nodesIn(tree)];
  const ofKind = (kind: string): Fields[] => nodes.flatMap((node) => (node.kind === kind ? [node.fields] : []));
  const functions = ofKind("FuncCall").map(({ funcname }) => namesIn(funcname).at(-1) ?? "");
  return {
    relations: ofKind("RangeVar")
      .filter(({ schemaname }) => schemaname !== undefined)
      .map(({ schemaname, relname }) => ({ schema: textOf(schemaname), name: textOf(relname) })),
    types: [...ofKind("TypeName"), ...ofKind("typeName")]
      .map(({ names }) => namesIn(names))
      .flatMap(([schema, name]) => (schema === undefined || name === undefined ? [] : [{ schema, name }])),
    functions,
    fields: [
      ...ofKind("ColumnRef").flatMap(({ fields }) => namesIn(fields).slice(1)),
      ...ofKind("A_Indirection").flatMap(({ indirection }) => namesIn(indirection)),
    ],
    makesArrays:
      ofKind("A_ArrayExpr").length > 0 ||
      ofKind("SubLink").some(({ subLinkType }) => subLinkType === "ARRAY_SUBLINK") ||
      functions.some((name) => MAKES_ARRAYS.test(name)),
  };
}

/** Every node of a tree, and every field of one that holds others. */
export function* nodesIn(tree: Fields): Generator<{ kind: string; fields: Fields }> {
  for (const [kind, fields] of Object.entries(tree)) {
    if (!isObject(fields)) continue;
    yield { kind, fields };
    yield* nodesIn(fields);
  }
}
