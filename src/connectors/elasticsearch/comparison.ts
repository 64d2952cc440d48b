import { isDeepStrictEqual } from "node:util";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Differences } from "../../domain/reconcile.ts";
import type { Column, Row } from "../../domain/row.ts";
import type { Comparison, ComparisonRequest } from "../sink.ts";
import { documentEncoder } from "./documents.ts";
import { type IndexFamily, requireAlias } from "./index-family.ts";
import { chooseKey } from "./index-writer.ts";
import { hashOf, NumberSet } from "./key-set.ts";
import type { IndexOptions } from "./options.ts";
import type { PointInTime } from "./point-in-time.ts";
import { fieldsOf } from "./raw-json.ts";
import type { IndexTarget } from "./target.ts";
import { keyRange, textOf, type ValueRange } from "./value-range.ts";

type Kind = keyof Differences;
type Key = Record<string, string | null>;

interface Difference {
  readonly kind: Kind;
  readonly key: Key;
  readonly columns: readonly string[];
}

/** Beyond this many, differences are only counted; nobody reads that many keys. */
const MOST_KEPT_DIFFERENCES = 20_000;

/**
 * Each batch is looked up by its ids, and the text of each document is compared with the text that a load would write.
 * At the end all documents are read once, to find those that no row accounts for.
 */
export function openIndexComparison(
  point: PointInTime,
  family: IndexFamily,
  request: ComparisonRequest<IndexTarget, IndexOptions>,
): Comparison {
  const { columns, incrementalKey, options } = request;
  const key = chooseKey(request, family);
  const keyColumns = key.flatMap((name) => columns.find((column) => column.name === name) ?? []);
  const cursor = columns.filter(({ name }) => name === incrementalKey);
  const encode = documentEncoder(columns, key, options.delete_when);
  const seen = new NumberSet();
  const found = new FoundDifferences();
  const source = { rows: 0, rows_duplicate: 0, rows_refused: 0 };
  const sourceKeys = keyRange(keyColumns);
  const sourceCursor = keyRange(cursor);

  const valuesOf = (row: Row, of: readonly Column[]): (string | null)[] =>
    of.map((column) => row[columns.indexOf(column)] ?? null);
  const keyOf = (row: Row): Key => named(key, valuesOf(row, keyColumns));

  return {
    key,
    columns: columns.map(({ name }) => name),

    async add(batch, standing) {
      const rows = batch.rows();
      const { operations, duplicates, rejects } = encode(rows, 0n);
      source.rows += rows.length;
      source.rows_duplicate += duplicates;
      source.rows_refused += rejects.length;
      for (const { row } of rejects)
        found.keep(hashOf(`refused ${source.rows} ${row.join()}`), { kind: "missing", key: keyOf(row), columns: [] });
      for (const row of rows) {
        sourceKeys.add(valuesOf(row, keyColumns));
        sourceCursor.add(valuesOf(row, cursor));
      }
      const documents = new Map(
        (await point.byIds(operations.map(({ id }) => id))).map(({ id, source: text }) => [id, text]),
      );
      for (const operation of operations) {
        const hash = hashOf(operation.id);
        if (!seen.add(hash)) source.rows_duplicate += 1;
        const difference = differenceOf(operation.document, documents.get(operation.id), columns, standing);
        if (difference === undefined) found.forget(hash);
        else found.keep(hash, { ...difference, key: keyOf(operation.row) });
      }
    },

    async finish(limit) {
      const target = { rows: 0 };
      const targetKeys = keyRange(keyColumns);
      const targetCursor = keyRange(cursor);
      for await (const hits of point.all([...key, ...cursor.map(({ name }) => name)])) {
        for (const hit of hits) {
          const fields = new Map(fieldsOf(hit.source).map(({ name, value }) => [name, value]));
          const values = keyColumns.map((column) => textOf(column, fields.get(column.name)));
          target.rows += 1;
          targetKeys.add(values);
          targetCursor.add(cursor.map((column) => textOf(column, fields.get(column.name))));
          const hash = hashOf(hit.id);
          if (seen.has(hash)) continue;
          found.keep(hash, { kind: "extra", key: named(key, values), columns: [] });
        }
      }
      return {
        source: { ...source, ...rangeOf(key, sourceKeys, sourceCursor) },
        target: { ...target, ...rangeOf(key, targetKeys, targetCursor) },
        ...listed(found.all(), sourceKeys, key, limit),
      };
    },

    close: () => point.close(),
  };
}

/** By the hash of an id: a row that comes again replaces what was found before. */
class FoundDifferences {
  readonly #found = new Map<number, Difference>();

  keep(hash: number, difference: Difference): void {
    const isFull = this.#found.size >= MOST_KEPT_DIFFERENCES;
    this.#found.set(hash, isFull ? { kind: difference.kind, key: {}, columns: [] } : difference);
  }

  forget(hash: number): void {
    this.#found.delete(hash);
  }

  all(): readonly Difference[] {
    return [...this.#found.values()];
  }
}

/** `wanted`: what a load would write; undefined: it would leave no document. */
function differenceOf(
  wanted: string | undefined,
  document: string | undefined,
  columns: readonly Column[],
  standing: "settled" | "pending",
): Omit<Difference, "key"> | undefined {
  const fields = document === undefined || wanted === undefined ? [] : differingFields(wanted, document, columns);
  const isSame = wanted === undefined ? document === undefined : document !== undefined && fields.length === 0;
  if (isSame) return undefined;
  const kind = wanted === undefined ? "extra" : document === undefined ? "missing" : "different";
  return { kind: standing === "pending" ? standing : kind, columns: fields };
}

function named(key: readonly string[], values: readonly (string | null)[]): Key {
  return Object.fromEntries(key.map((name, index) => [name, values[index] ?? null]));
}

/** Most documents are equal as texts; the others may still mean the same, written by somebody else. */
function differingFields(wanted: string, found: string, columns: readonly Column[]): string[] {
  if (wanted.trimEnd() === found) return [];
  const [ours, theirs] = [JSON.parse(wanted), JSON.parse(found)] as [Record<string, unknown>, Record<string, unknown>];
  return columns.map(({ name }) => name).filter((name) => !isDeepStrictEqual(ours[name] ?? null, theirs[name] ?? null));
}

function rangeOf(key: readonly string[], keys: ValueRange, cursor: ValueRange) {
  const [least, greatest] = [keys.least(), keys.greatest()];
  return {
    key_min: least === undefined ? null : named(key, least),
    key_max: greatest === undefined ? null : named(key, greatest),
    incremental_key_min: cursor.least()?.[0] ?? null,
    incremental_key_max: cursor.greatest()?.[0] ?? null,
  };
}

function listed(found: readonly Difference[], range: ValueRange, key: readonly string[], limit: number): Differences {
  const ofKind = (kind: Kind) => {
    const all = found.filter((one) => one.kind === kind);
    const known = all.filter((one) => key.every((name) => name in one.key));
    const valuesOf = (one: Difference) => key.map((name) => one.key[name] ?? null);
    const sorted = known.sort((a, b) => range.compare(valuesOf(a), valuesOf(b))).slice(0, limit);
    return { count: all.length, sorted };
  };
  const keysOnly = (kind: Kind) => {
    const { count, sorted } = ofKind(kind);
    return { count, keys: sorted.map((one) => one.key) };
  };
  const different = ofKind("different");
  return {
    missing: keysOnly("missing"),
    extra: keysOnly("extra"),
    different: {
      count: different.count,
      keys: different.sorted.map((one) => ({ key: one.key, columns: [...one.columns] })),
    },
    pending: keysOnly("pending"),
  };
}

/** Without its alias there is nothing to compare with. */
export function requireLive(family: IndexFamily): string {
  requireAlias(family);
  const { live, name } = family;
  if (live !== undefined) return live.index;
  throw new VitrinaError("TARGET_MISSING", `The target es:${name} does not exist.`);
}
