import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import type { Differences, SourceSide, TargetSide } from "../../domain/reconcile.ts";
import type { Row } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { batchOfRows, type RowBatch } from "../row-batch.ts";
import type { Comparison, ComparisonRequest, ComparisonResult } from "../sink.ts";
import { behind, type OrderColumn, upTo } from "./query-text.ts";
import { extended, orderColumns } from "./read-session.ts";
import { createTrialTables, findRefusedRows } from "./refused-rows.ts";
import { readTargetTable, type TargetTable } from "./target-table.ts";
import type { Conversion } from "./type-fit.ts";

/**
 * The rows of the source are copied into a temporary table like the stage of a load, and compared there by one join.
 * So every value goes through the same conversion as in a load, whatever query or code task it comes from, and the stored
 * bytes are compared, as a load does. Everything happens in one snapshot of the target, which can write nothing but
 * the two temporary tables.
 */

const STAGE = "pg_temp.vitrina_rows";
const FOUND = "pg_temp.vitrina_found";

/** What a staged row is, and which of its columns could not be staged: from settings, because COPY brings only columns that were read. */
type Standing = "settled" | "pending" | "refused";
const STANDING = "vitrina.standing";
const REFUSED = "vitrina.refused";

/** A column with its numbered name in the temporary tables, because names of the query could collide. */
interface StagedColumn extends OrderColumn {
  readonly staged: string;
  readonly conversion: Conversion | undefined;
}

interface ComparedTable {
  readonly target: string;
  /** What of it is compared, as a FROM item. */
  readonly held: string;
  readonly columns: readonly StagedColumn[];
  readonly key: readonly StagedColumn[];
  readonly incrementalKey: StagedColumn | undefined;
}

export async function openTableComparison(
  client: Client,
  name: TableName,
  request: ComparisonRequest,
): Promise<Comparison> {
  const table = await readTargetTable(client, name, { ...request, createTarget: false, addColumns: false });
  const whole = await shapeOf(client, table, request.incrementalKey);
  await createTables(client, whole);
  // The first statement takes the snapshot.
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_current_snapshot()");
  const range = await rangeOf(client, table, whole, request.part);
  const shape = { ...whole, held: heldIn(whole, range) };
  const what = `compare with ${shape.target}`;
  const asking = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((error: unknown) => Promise.reject(databaseError(error, what)));
  return {
    key: shape.key.map(({ name: column }) => column),
    columns: shape.columns.map(({ name: column }) => column),
    range,
    add: (batch, standing) =>
      asking(
        request.setRefusedAside
          ? stageGoodRows(client, shape, batch, standing)
          : stageRows(client, shape.columns, batch, standing),
      ),
    finish: (limit) => asking(compare(client, shape, limit)),
    close: () => client.end(),
  };
}

async function shapeOf(client: Client, table: TargetTable, incrementalKey: string | null): Promise<ComparedTable> {
  const names = table.columns.map(({ name }) => name);
  const ordered = await orderColumns(client, table.columns, names);
  const columns = ordered.map((column, index) => ({
    ...column,
    staged: `c${index}`,
    conversion: table.conversions.get(column.name),
  }));
  const find = (wanted: string): StagedColumn | undefined => columns.find(({ name }) => name === wanted);
  return {
    target: quoteTable(table.name),
    held: quoteTable(table.name),
    columns,
    key: table.key.flatMap(({ name }) => find(name) ?? []),
    incrementalKey: incrementalKey === null ? undefined : find(incrementalKey),
  };
}

/** The part that was asked for, if a range is the same keys on both sides; undefined: the whole. */
async function rangeOf(
  client: Client,
  { sortsAlike }: TargetTable,
  { target, key }: ComparedTable,
  part: ComparisonRequest["part"],
): Promise<Comparison["range"]> {
  if (part === undefined || !sortsAlike) return undefined;
  const { after, parts } = part;
  const texts = key.map(({ name }) => `t.${quoteIdentifier(name)}::text`).join(", ");
  const order = key.map((column) => inOrder(`t.${quoteIdentifier(column.name)}`, column)).join(", ");
  const rest = `FROM ${target} AS t ${after === null ? "" : `WHERE ${behind(after, key, "t")}`}`;
  const { rows } = await extended(
    client,
    `SELECT ${texts} ${rest} ORDER BY ${order}
     OFFSET (SELECT greatest(ceil(count(*) / ${parts}.0) - 1, 0) ${rest}) LIMIT 1`,
  );
  // Nothing in the target is left, or asked to be left: to the end.
  const last = parts === 1 ? undefined : rows[0];
  return { after, upTo: (last as readonly string[] | undefined) ?? null };
}

function heldIn({ target, key }: ComparedTable, range: Comparison["range"]): string {
  const conditions = [
    ...(range?.after ? [behind(range.after, key, "t")] : []),
    ...(range?.upTo ? [upTo(range.upTo, key, "t")] : []),
  ];
  return conditions.length === 0
    ? target
    : `(SELECT t.ctid, t.* FROM ${target} AS t WHERE ${conditions.join(" AND ")})`;
}

/** Made from the target itself, to have its types and collations; but values of another type are staged as they are. */
async function createTables(client: Client, shape: ComparedTable): Promise<void> {
  const { target, columns, key } = shape;
  const stored = ({ name, staged }: StagedColumn): string => `t.${quoteIdentifier(name)} AS ${staged}`;
  const read = columns.map((column) =>
    column.conversion === undefined ? stored(column) : `NULL::${column.conversion.staged} AS ${column.staged}`,
  );
  await client.query(`
    CREATE TEMP TABLE vitrina_rows AS
      SELECT NULL::text AS standing, NULL::text[] AS refused, ${read.join(", ")} FROM ${target} t WITH NO DATA;
    ALTER TABLE ${STAGE} ALTER standing SET DEFAULT current_setting('${STANDING}'),
                         ALTER refused SET DEFAULT nullif(current_setting('${REFUSED}', true), '')::text[];
    CREATE TEMP TABLE vitrina_found AS
      SELECT NULL::text AS kind, NULL::text[] AS columns, ${key.map(stored).join(", ")} FROM ${target} t WITH NO DATA`);
  await createTrialTables(client, { columns: stagedNames(shape) });
}

/** The staged rows as a load would store them. What it would refuse has no value here, and counts as refused. */
function storedRows({ columns }: ComparedTable): string {
  const isRefused = ({ staged, conversion }: StagedColumn): string | undefined => conversion?.refuses?.(staged);
  const values = columns.map((column) => {
    const { staged, conversion } = column;
    if (conversion === undefined) return staged;
    const condition = isRefused(column);
    const value = conversion.convert(staged);
    return `${condition === undefined ? value : `CASE WHEN ${condition} THEN NULL ELSE ${value} END`} AS ${staged}`;
  });
  const names = columns.flatMap((column) => {
    const condition = isRefused(column);
    return condition === undefined ? [] : [`CASE WHEN ${condition} THEN ${quoteLiteral(column.name)} END`];
  });
  return `(SELECT w.ctid, CASE WHEN r.found = '{}' THEN standing ELSE 'refused' END AS standing,
                  r.found AS refused, ${values.join(", ")}
             FROM ${STAGE} AS w
            CROSS JOIN LATERAL (SELECT w.refused || array_remove(ARRAY[${names.join(", ")}]::text[], NULL)) AS r (found)) AS staged_rows`;
}

async function stageRows(
  client: Client,
  columns: readonly StagedColumn[],
  batch: RowBatch,
  standing: Standing,
  refused: readonly StagedColumn[] = [],
): Promise<void> {
  if (batch.count === 0) return;
  const names = columns.map(({ staged }) => staged).join(", ");
  await client.query("SELECT set_config($1, $2, true), set_config($3, $4::text[]::text, true)", [
    STANDING,
    standing,
    REFUSED,
    refused.map(({ name }) => name),
  ]);
  const stream = client.query(copyFrom(`COPY ${STAGE} (${names}) FROM STDIN`));
  await pipeline(Readable.from(batch.copyText(), { objectMode: false }), stream);
}

/** Of rows that cannot be staged the key remains, where that fits, and the columns that do not fit. */
async function stageGoodRows(client: Client, shape: ComparedTable, batch: RowBatch, standing: Standing): Promise<void> {
  if (await tryToStage(client, shape.columns, batch, standing)) return;
  const { columns, key } = shape;
  const places = await findRefused(client, shape, batch, columns);
  const rows = batch.rows();
  await stageRows(client, columns, batchOfRows(rows.filter((_, place) => !places.has(place))), standing);
  const refused = rows.filter((_, place) => places.has(place));
  // By the columns that do not fit: they are mostly the same ones.
  const groups = new Map<string, { misfits: StagedColumn[]; keys: Row[] }>();
  for (const { row, misfits } of await misfitsOf(client, shape, refused)) {
    const name = misfits.map(({ staged }) => staged).join();
    const group = groups.get(name) ?? { misfits, keys: [] };
    groups.set(name, group);
    const isNamed = !key.some((column) => misfits.includes(column));
    group.keys.push(key.map((column) => (isNamed ? (row[columns.indexOf(column)] ?? null) : null)));
  }
  for (const { misfits, keys } of groups.values()) {
    await stageRows(client, key, batchOfRows(keys), "refused", misfits);
  }
}

async function misfitsOf(
  client: Client,
  shape: ComparedTable,
  rows: readonly Row[],
): Promise<{ row: Row; misfits: StagedColumn[] }[]> {
  const found = rows.map((row) => ({ row, misfits: [] as StagedColumn[] }));
  for (const [index, column] of shape.columns.entries()) {
    const values = batchOfRows(rows.map((row) => [row[index] ?? null]));
    for (const place of await findRefused(client, shape, values, [column])) found[place]?.misfits.push(column);
  }
  return found;
}

/** The places of the rows that cannot be staged with the columns given. */
async function findRefused(
  client: Client,
  shape: ComparedTable,
  batch: RowBatch,
  given: readonly StagedColumn[],
): Promise<Set<number>> {
  const names = given.map(({ staged }) => staged);
  const list = names.join(", ");
  const found = await findRefusedRows(
    client,
    "stage the rows",
    {
      rowType: STAGE,
      columns: stagedNames(shape),
      given: names,
      statement: (relation) => `INSERT INTO ${STAGE} (${list}) SELECT ${list} FROM ${relation} AS r`,
    },
    batch,
  );
  return new Set(found.map(({ index }) => index));
}

function stagedNames({ columns }: ComparedTable): string[] {
  return ["standing", "refused", ...columns.map(({ staged }) => staged)];
}

async function tryToStage(
  client: Client,
  columns: readonly StagedColumn[],
  batch: RowBatch,
  standing: Standing,
): Promise<boolean> {
  await client.query("SAVEPOINT try");
  try {
    await stageRows(client, columns, batch, standing);
    await client.query("RELEASE SAVEPOINT try");
    return true;
  } catch (error) {
    const failure = databaseError(error, "stage the rows");
    if (failure.retry !== "row") throw failure;
    await client.query("ROLLBACK TO SAVEPOINT try");
    return false;
  }
}

async function compare(client: Client, shape: ComparedTable, limit: number): Promise<ComparisonResult> {
  // Autovacuum does not analyze temporary tables, and without statistics the planner would guess.
  await client.query(`ANALYZE ${STAGE}`);
  await extended(client, findDifferences(shape));
  const source = await describeSource(client, shape);
  const target = await describeTarget(client, shape);
  const differences = await listDifferences(client, shape, limit);
  await client.query("COMMIT");
  return { source, target, ...differences };
}

/** Of rows with the same key the last counts: `ctid` grows as rows arrive. A row without a key stands for itself. */
function lastOfEachKey(shape: ComparedTable): string {
  const { columns, key } = shape;
  const rows = storedRows(shape);
  const keys = key.map(({ staged }) => staged).join(", ");
  const all = `ctid, standing, refused, ${columns.map(({ staged }) => staged).join(", ")}`;
  const isMissing = key.map(({ staged }) => `${staged} IS NULL`).join(" OR ");
  return `(SELECT DISTINCT ON (${keys}) ${all} FROM ${rows} WHERE NOT (${isMissing}) ORDER BY ${keys}, ctid DESC)
    UNION ALL SELECT ${all} FROM ${rows} WHERE ${isMissing}`;
}

function findDifferences(shape: ComparedTable): string {
  const { held, columns, key } = shape;
  const differs = (column: StagedColumn): string =>
    `ROW(s.${column.staged})::record OPERATOR(pg_catalog.*<>) ROW(t.${quoteIdentifier(column.name)})::record`;
  const named = columns
    .map((column) => `CASE WHEN ${differs(column)} THEN ${quoteLiteral(column.name)} END`)
    .join(", ");
  const staged = columns.map((column) => `s.${column.staged}`).join(", ");
  const stored = columns.map(({ name }) => `t.${quoteIdentifier(name)}`).join(", ");
  const anyDiffers = `ROW(${staged})::record OPERATOR(pg_catalog.*<>) ROW(${stored})::record`;
  const sameKey = key.map((column) => `t.${quoteIdentifier(column.name)} = s.${column.staged}`).join(" AND ");
  const eitherKey = key.map((column) => `coalesce(s.${column.staged}, t.${quoteIdentifier(column.name)})`).join(", ");
  return `
    INSERT INTO ${FOUND}
    SELECT CASE WHEN s.ctid IS NULL THEN 'extra'
                WHEN s.standing = 'pending' THEN 'pending'
                WHEN t.ctid IS NULL THEN 'missing'
                ELSE 'different' END,
           CASE WHEN s.standing = 'refused' THEN s.refused
                WHEN s.ctid IS NOT NULL AND t.ctid IS NOT NULL
                THEN array_remove(ARRAY[${named}]::text[], NULL) END,
           ${eitherKey}
      FROM (${lastOfEachKey(shape)}) AS s
      FULL JOIN ${held} AS t ON ${sameKey}
     WHERE s.ctid IS NULL OR t.ctid IS NULL OR s.standing = 'refused' OR ${anyDiffers}`;
}

async function describeSource(client: Client, shape: ComparedTable): Promise<SourceSide> {
  const { rows } = await extended(
    client,
    `SELECT (SELECT count(*) FROM ${STAGE}), (SELECT count(*) FROM (${lastOfEachKey(shape)}) s),
            (SELECT count(*) FROM ${storedRows(shape)} WHERE standing = 'refused')`,
  );
  const [all, distinct, refused] = (rows[0] ?? []).map(Number) as [number, number, number];
  const range = await describeRange(client, shape, `(SELECT * FROM ${storedRows(shape)})`, ({ staged }) => staged);
  return { rows: all, rows_duplicate: all - distinct, rows_refused: refused, ...range };
}

async function describeTarget(client: Client, shape: ComparedTable): Promise<TargetSide> {
  const { rows } = await extended(client, `SELECT count(*) FROM ${shape.held} AS t`);
  const range = await describeRange(client, shape, shape.held, ({ name }) => quoteIdentifier(name));
  return { rows: Number(rows[0]?.[0]), ...range };
}

async function describeRange(
  client: Client,
  { key, incrementalKey }: ComparedTable,
  relation: string,
  columnOf: (column: StagedColumn) => string,
): Promise<Omit<TargetSide, "rows">> {
  // Qualified, because ORDER BY would read a bare name as the output column, which is text.
  const nameOf = (column: StagedColumn): string => `r.${columnOf(column)}`;
  const outermost = async (columns: readonly StagedColumn[], direction: "ASC" | "DESC"): Promise<Row | undefined> => {
    const texts = columns.map((column) => `${nameOf(column)}::text`).join(", ");
    const present = columns.map((column) => `${nameOf(column)} IS NOT NULL`).join(" AND ");
    const order = columns.map((column) => `${inOrder(nameOf(column), column)} ${direction}`).join(", ");
    const statement = `SELECT ${texts} FROM ${relation} AS r WHERE ${present} ORDER BY ${order} LIMIT 1`;
    return (await extended(client, statement)).rows[0];
  };
  const first = await outermost(key, "ASC");
  const last = await outermost(key, "DESC");
  const cursor = incrementalKey === undefined ? [] : [incrementalKey];
  const least = cursor.length === 0 ? undefined : await outermost(cursor, "ASC");
  const greatest = cursor.length === 0 ? undefined : await outermost(cursor, "DESC");
  return {
    key_min: first === undefined ? null : keyOf(key, first),
    key_max: last === undefined ? null : keyOf(key, last),
    incremental_key_min: least?.[0] ?? null,
    incremental_key_max: greatest?.[0] ?? null,
  };
}

async function listDifferences(client: Client, { key }: ComparedTable, limit: number): Promise<Differences> {
  // As they print, not cast: rejects have such keys, too.
  const texts = key.map(({ staged }) => `f.${staged}`).join(", ");
  const order = key.map((column) => inOrder(`f.${column.staged}`, column)).join(", ");
  const ofKind = async (kind: keyof Differences) => {
    const { rows: counts } = await extended(client, `SELECT count(*) FROM ${FOUND} WHERE kind = '${kind}'`);
    const { rows } = await extended(
      client,
      `SELECT to_json(f.columns), ${texts} FROM ${FOUND} AS f WHERE f.kind = '${kind}' ORDER BY ${order} LIMIT ${limit}`,
    );
    const keys = rows.map(([columns, ...values]) => ({
      key: keyOf(key, values),
      columns: JSON.parse(columns ?? "[]") as string[],
    }));
    return { count: Number(counts[0]?.[0]), keys };
  };
  const keysOnly = async (kind: keyof Differences) => {
    const { count, keys } = await ofKind(kind);
    return { count, keys: keys.map(({ key: values }) => values) };
  };
  return {
    missing: await keysOnly("missing"),
    extra: await keysOnly("extra"),
    different: await ofKind("different"),
    pending: await keysOnly("pending"),
  };
}

/** Text sorts by bytes: the rules of languages differ between servers. */
function inOrder(expression: string, { collatable }: OrderColumn): string {
  return collatable ? `${expression} COLLATE "C"` : expression;
}

function keyOf(key: readonly StagedColumn[], values: Row): Record<string, string | null> {
  return Object.fromEntries(key.map(({ name }, index) => [name, values[index] ?? null]));
}
