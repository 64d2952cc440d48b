import { NODE_KINDS } from "./node-kinds.ts";
import { type Scope, whatIsWrong } from "./node-rules.ts";
import { type GuardFinding, shown } from "./refusal.ts";
import { findExcessOfStructure } from "./structure.ts";
import { type Fields, isObject, offsetOf, type Statement, statementsOf, textOf } from "./tree.ts";

/** Everything that is wrong with a query, judging by its text. Never throws. */
export async function examine(query: string, allowedSchemas: readonly string[]): Promise<readonly GuardFinding[]> {
  const statements = await statementsOf(query);
  if (!Array.isArray(statements)) return [statements as GuardFinding];
  const [first, second] = statements as readonly Statement[];
  if (first === undefined) return [{ what: "there is no statement" }];
  if (second !== undefined) {
    return [{ offset: second.start, what: "a query is one statement, and here a second one begins" }];
  }
  const [kind = ""] = Object.keys(first.node);
  if (kind !== "SelectStmt") {
    return [{ offset: first.start, what: `a query is one SELECT, and this is ${statementName(kind)}` }];
  }
  const walk = new Walk(allowedSchemas);
  walk.visitNode(first.node, undefined, first.start);
  if (walk.findings.length > 0) return walk.findings;
  const excess = findExcessOfStructure(first.node);
  return excess === undefined ? [] : [excess];
}

function statementName(kind: string): string {
  return kind
    .replace(/^Variable|Stmt$/g, "")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toUpperCase();
}

/** Messages for kinds that people are likely to try. */
const REFUSED_KINDS: ReadonlyMap<string, string> = new Map([
  ["InsertStmt", "a query only reads, so it has no INSERT"],
  ["UpdateStmt", "a query only reads, so it has no UPDATE"],
  ["DeleteStmt", "a query only reads, so it has no DELETE"],
  ["MergeStmt", "a query only reads, so it has no MERGE"],
  ["ParamRef", "a query has no parameters such as $1"],
  ["XmlExpr", "a query may not use XML"],
  ["XmlSerialize", "a query may not use XML"],
  ["RangeTableFunc", "a query may not use XML"],
]);

const REFUSED_FIELDS: ReadonlyMap<string, string> = new Map([
  ["intoClause", "a query only reads, so its SELECT has no INTO"],
  ["lockingClause", "a query only reads, so it locks no rows (FOR UPDATE, FOR SHARE)"],
]);

/** One walk over a tree. Every field of every node is visited, because a table can be named anywhere. */
class Walk {
  readonly findings: GuardFinding[] = [];
  readonly #allowedSchemas: readonly string[];

  constructor(allowedSchemas: readonly string[]) {
    this.#allowedSchemas = allowedSchemas;
  }

  visitNode(node: unknown, scope: Scope | undefined, offset: number): void {
    // Without any kind: a place that is left empty, such as the columns of a plain DISTINCT.
    for (const [kind, fields] of Object.entries(node ?? {})) this.#visit(kind, fields, scope, offset);
  }

  #report(offset: number, what: string): void {
    this.findings.push({ offset, what });
  }

  /** For a node without a position, that of the enclosing node is reported. */
  #visit(kind: string, node: unknown, outerScope: Scope | undefined, outerOffset: number): void {
    const fieldKinds = NODE_KINDS.get(kind);
    const offset = offsetOf(node) ?? outerOffset;
    if (fieldKinds === undefined || !isObject(node)) {
      this.#report(offset, REFUSED_KINDS.get(kind) ?? `a query may not use ${shown(kind)}`);
      return;
    }
    const wrong = whatIsWrong(kind, node, { allowedSchemas: this.#allowedSchemas, scope: outerScope });
    if (wrong !== undefined) this.#report(offset, wrong);
    const { withClause, ...fields } = node;
    const scope = isObject(withClause) ? this.#visitWith(withClause, outerScope, offset) : outerScope;
    for (const [field, value] of Object.entries(fields)) {
      this.#visitField(kind, field, fieldKinds.get(field), value, scope, offset);
    }
  }

  #visitField(
    kind: string,
    field: string,
    expected: string | undefined,
    value: unknown,
    scope: Scope | undefined,
    offset: number,
  ): void {
    if (expected === "nodes") {
      for (const node of Array.isArray(value) ? value : [value]) this.visitNode(node, scope, offset);
    } else if (expected === "plain" && !isObject(value)) {
      // Text, a number, or yes and no: nothing to look into.
    } else if (expected === undefined || expected === "plain") {
      this.#report(offset, REFUSED_FIELDS.get(field) ?? `a query may not use ${shown(field)} of ${shown(kind)}`);
    } else {
      this.#visit(expected, value, scope, offset);
    }
  }

  /** Returns the names that the rest of the statement may use. Each CTE sees those before it, or all if recursive. */
  #visitWith({ ctes, ...fields }: Fields, outer: Scope | undefined, offset: number): Scope {
    const list: readonly unknown[] = Array.isArray(ctes) ? ctes : [];
    const names = list.map((cte) => textOf((cte as { CommonTableExpr?: Fields }).CommonTableExpr?.["ctename"]));
    // Grows while they are visited, so that a thousand of them are not copied a thousand times.
    const seen = new Set(fields["recursive"] === true ? names : []);
    const scope = { names: seen, outer };
    for (const [index, cte] of list.entries()) {
      this.visitNode(cte, scope, offset);
      seen.add(names[index] ?? "");
    }
    this.#visit("WithClause", fields, outer, offset);
    return scope;
  }
}
