import { plural } from "../domain/counted.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import { findExcess } from "../sql-guard/limits.ts";
import { nodesIn } from "../sql-guard/mentions.ts";
import { shown } from "../sql-guard/refusal.ts";
import { type Fields, isObject, namesIn, offsetOf, type Statement, statementsOf, textOf } from "../sql-guard/tree.ts";
import { listOf } from "./expressions.ts";
import type { ImagesOf } from "./follow-plan.ts";
import type { FactColumn, RelationFacts } from "./query-facts.ts";
import { tableLabel } from "./sentences.ts";
import { keyValue } from "./statements.ts";

/** `keys` of a table in `follow.tables`: a person's own way from its changed rows to the keys. */
export interface ExplicitKeys {
  statement(images: ImagesOf): string;
  /** Per table, the columns that its images need. */
  readonly imageColumns: ReadonlyMap<RelationFacts, readonly string[]>;
}

export async function readExplicitKeys(
  sql: string,
  table: RelationFacts,
  among: readonly RelationFacts[],
  key: readonly FactColumn[],
): Promise<ExplicitKeys | { readonly why: string }> {
  const label = tableLabel(table);
  const select = await onlySelect(sql);
  if ("why" in select) return { why: `The keys of ${label} cannot be read: ${select.why}.` };
  const columns = targetCount(select.tree);
  if (columns !== key.length) {
    const has = columns === undefined ? "are not written one by one" : `are ${columns}`;
    return {
      why: `The keys of ${label} are to be ${plural(key.length, "column")}, one for each of the key; these ${has}.`,
    };
  }
  const uses = imageUses(select.tree, table, among);
  if ("why" in uses) return { why: `The keys of ${label} cannot be read: ${uses.why}.` };
  const mentioned = columnNames(select.tree);
  const used = new Set([table, ...uses.map(({ relation }) => relation)]);
  return {
    imageColumns: new Map([...used].map((relation) => [relation, columnsOf(relation, mentioned)])),
    statement: (images) => written(select, uses, key, images, mentioned),
  };
}

interface OnlySelect {
  readonly tree: Fields;
  readonly bytes: Buffer;
}

async function onlySelect(sql: string): Promise<OnlySelect | { readonly why: string }> {
  const excess = await findExcess(sql);
  if (excess !== undefined) return { why: excess.what };
  const statements = await statementsOf(sql);
  if (!Array.isArray(statements)) return { why: (statements as { what: string }).what };
  const [first, second] = statements as readonly Statement[];
  const tree = first?.node["SelectStmt"];
  if (first === undefined || second !== undefined || !isObject(tree)) return { why: "it is not one SELECT" };
  return { tree, bytes: Buffer.from(sql, "utf8").subarray(0, first.end) };
}

/** Undefined where a star hides it. */
function targetCount(select: Fields): number | undefined {
  if (isObject(select["larg"])) return targetCount(select["larg"]);
  const targets = listOf(select["targetList"]);
  const isStar = JSON.stringify(targets.map((node) => (node as { ResTarget?: Fields }).ResTarget?.["val"])).includes(
    '"A_Star"',
  );
  return isStar ? undefined : targets.length;
}

interface ImageUse {
  readonly relation: RelationFacts;
  readonly isChanged: boolean;
  readonly start: number;
  readonly end: number;
  /** What its columns are called by, where the text gives no other name. */
  readonly alias: string;
}

const RANGE_NAME = /^(?:"(?:[^"]|"")+"|[\w$]+)(?:\s*\.\s*(?:"(?:[^"]|"")+"|[\w$]+))?/;

function rangesIn(tree: Fields): readonly Fields[] {
  return [...nodesIn(tree)].flatMap(({ kind, fields }) => (kind === "RangeVar" ? [fields] : []));
}

function imageUses(
  tree: Fields,
  table: RelationFacts,
  among: readonly RelationFacts[],
): readonly (ImageUse & { range: Fields })[] | { readonly why: string } {
  const uses: (ImageUse & { range: Fields })[] = [];
  const ctes = cteNames(tree);
  for (const range of rangesIn(tree)) {
    const [schema, name] = [textOf(range["schemaname"]), textOf(range["relname"])];
    const start = offsetOf(range) ?? 0;
    const place = {
      range,
      start,
      end: start,
      alias: range["alias"] === undefined ? ` AS ${quoteIdentifier(name)}` : "",
    };
    if (schema === "" && name === "changed" && !ctes.has(name))
      uses.push({ ...place, relation: table, isChanged: true });
    else if (schema === "present") {
      const [relation, another] = among.filter((one) => one.name === name);
      if (relation === undefined)
        return { why: `the query reads no table ${shown(name)}, so nothing is known of what it had before` };
      if (another !== undefined) return { why: `more than one table of the query is called ${shown(name)}` };
      uses.push({ ...place, relation, isChanged: false });
    } else if (schema === "" && !ctes.has(name)) return { why: `${shown(name)} has no schema` };
  }
  if (!uses.some(({ isChanged }) => isChanged)) return { why: "it does not read `changed`" };
  return uses;
}

function cteNames(tree: Fields): ReadonlySet<string> {
  return new Set(
    [...nodesIn(tree)].flatMap(({ kind, fields }) => (kind === "CommonTableExpr" ? [textOf(fields["ctename"])] : [])),
  );
}

/** Every name that may be a column; undefined: all, because of a star. */
function columnNames(tree: Fields): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  for (const { kind, fields } of nodesIn(tree)) {
    if (kind === "JoinExpr" && fields["isNatural"] === true) return undefined;
    if (kind === "JoinExpr") for (const name of namesIn(fields["usingClause"])) names.add(name);
    if (kind !== "ColumnRef") continue;
    if (listOf(fields["fields"]).some((field) => isObject(field) && "A_Star" in field)) return undefined;
    for (const name of namesIn(fields["fields"])) names.add(name);
  }
  return names;
}

/** A name may also be that of the whole row, which takes every column; so does a list of new names for them. */
function columnsOf(relation: RelationFacts, mentioned: ReadonlySet<string> | undefined): readonly string[] {
  const all = relation.columns.map(({ name }) => name);
  const found = mentioned === undefined ? all : all.filter((name) => mentioned.has(name));
  return found.length > 0 ? found : all.slice(0, 1);
}

function written(
  { bytes }: OnlySelect,
  uses: readonly ImageUse[],
  key: readonly FactColumn[],
  images: ImagesOf,
  mentioned: ReadonlySet<string> | undefined,
): string {
  const pieces: string[] = [];
  let from = 0;
  for (const { relation, isChanged, start, alias } of [...uses].sort((one, other) => one.start - other.start)) {
    const length = RANGE_NAME.exec(bytes.subarray(start).toString("utf8"))?.[0] ?? "";
    const columns = columnsOf(relation, mentioned).map(quoteIdentifier).join(", ");
    const table = `${quoteIdentifier(relation.schema)}.${quoteIdentifier(relation.name)}`;
    const { changed, old } = images(relation);
    const item = isChanged
      ? `(SELECT ${columns} FROM ${changed} AS c)`
      : `(SELECT ${columns} FROM ${table} UNION ALL SELECT ${columns} FROM ${old} AS o)`;
    pieces.push(bytes.subarray(from, start).toString("utf8"), item, alias);
    from = start + Buffer.byteLength(length, "utf8");
  }
  const sql = [...pieces, bytes.subarray(from).toString("utf8")].join("");
  const names = key.map(({ name }) => quoteIdentifier(name));
  const list = key.map((column, index) => keyValue(`k.${names[index]}`, column));
  return `SELECT DISTINCT ${list.join(", ")} FROM (\n${sql}\n) AS k (${names.join(", ")})`;
}
