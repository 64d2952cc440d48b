import { randomUUID } from "node:crypto";
import { requireFewDeletions } from "../../../src/connectors/deletion-guard.ts";
import type {
  BatchResult,
  Comparison,
  ComparisonRequest,
  RejectedRow,
  Sink,
  SinkRequest,
  SinkWriter,
  Uncommitted,
} from "../../../src/connectors/sink.ts";
import { VitrinaError } from "../../../src/domain/error-catalogue.ts";
import type { Column, Row } from "../../../src/domain/row.ts";
import { SHELF_ERRORS, type ShelfOptions, type ShelfSettings, type ShelfTarget } from "./description.ts";

type Cells = Readonly<Record<string, string | null>>;
type Rows = Map<string, Cells>;

export interface Shelf {
  readonly id: string;
  readonly key: readonly string[];
  columns: readonly string[];
  rows: Rows;
}

/** What readers see. */
export const shelves = new Map<string, Shelf>();
/** Unfinished loads, by shelf and load. */
const unfinished = new Map<string, Rows>();
/** The latest claim of each pipeline on a shelf: whoever has an earlier one is kept out. */
const claims = new Map<string, number>();

export function openMemorySink({ mostRows }: Pick<ShelfSettings, "mostRows">): Sink<ShelfTarget, ShelfOptions> {
  return {
    open: async (request) => openWriter(request, mostRows),
    openComparison: async (request) => compare(request),
    async clearAway({ target, pipelineId }) {
      unfinished.delete(`${target.shelf} ${pipelineId}`);
      return null;
    },
  };
}

function openWriter(request: SinkRequest<ShelfTarget, ShelfOptions>, mostRows: number): SinkWriter {
  const { target, load, claim, columns } = request;
  const label = `memory:${target.shelf}`;
  const key = chooseKey(request);
  const read = rowReader(columns, key, request.options);
  const found = shelves.get(target.shelf);
  if (found === undefined && !request.createTarget) {
    throw new VitrinaError("TARGET_MISSING", `There is no ${label}.`);
  }
  const missing = found === undefined ? [] : columns.filter(({ name }) => !found.columns.includes(name));
  if (missing.length > 0 && !request.addColumns) {
    throw new VitrinaError("TARGET_COLUMN_MISSING", `${label} has no column ${missing.map(({ name }) => name)}.`);
  }
  const claimed = `${target.shelf} ${claim.pipelineId}`;
  claims.set(claimed, claim.epoch);
  const loadName = load.kind === "replace" ? `${target.shelf} ${load.loadId}` : undefined;

  const requireClaim = async (): Promise<void> => {
    if (claims.get(claimed) !== claim.epoch) await request.requireLease();
  };
  const shelf = (): Shelf => {
    const names = columns.map(({ name }) => name);
    const one = shelves.get(target.shelf) ?? { id: randomUUID(), key, columns: names, rows: new Map() };
    one.columns = [...new Set([...one.columns, ...names])];
    shelves.set(target.shelf, one);
    return one;
  };
  const written = (): Rows => (loadName === undefined ? shelf().rows : (unfinished.get(loadName) ?? new Map()));

  return {
    key,
    strategy: load.kind === "replace" ? "new shelf" : "upsert",
    resumed: loadName === undefined || unfinished.has(loadName),
    commits: { way: "after" },
    deletesRows: load.kind === "upsert" && load.deletes === true,
    databaseMark: undefined,
    async takeMark() {
      const { id, rows } = shelves.get(target.shelf) ?? {};
      return loadName !== undefined || id === undefined ? null : { identity: id, filled: rows?.size !== 0 };
    },
    async lossSince({ identity, filled }) {
      const now = shelves.get(target.shelf);
      if (now === undefined) return "missing";
      if (identity !== undefined && identity !== now.id) return "replaced";
      return filled === true && now.rows.size === 0 ? "emptied" : undefined;
    },
    begin: async () =>
      changeOf(async () => {
        await requireClaim();
        if (loadName === undefined) shelf();
        else unfinished.set(loadName, new Map());
      }),
    countUpTo: async (limit) => Math.min(limit, shelves.get(target.shelf)?.rows.size ?? 0),
    countKeys: async (keys) =>
      new Set(keys.map((values) => JSON.stringify(values)).filter((id) => shelves.get(target.shelf)?.rows.has(id)))
        .size,
    async write(batch, _place, _setRefusedAside, keys = []) {
      await requireClaim();
      const { rows, present, result } = read(batch.rows());
      const into = written();
      const gone = keys.map((values) => JSON.stringify(values)).filter((id) => !present.has(id));
      const rows_deleted = gone.filter((id) => into.delete(id)).length;
      for (const [id, cells] of rows) into.set(id, { ...into.get(id), ...cells });
      if (into.size > mostRows) {
        throw new VitrinaError(SHELF_ERRORS.SHELF_FULL, `${label} has room for ${mostRows} rows.`);
      }
      return { result: { ...result, rows_deleted }, ...changeOf(async () => undefined) };
    },
    async finish(guard) {
      await requireClaim();
      const loaded = written();
      const before = [...(shelves.get(target.shelf)?.rows.keys() ?? [])];
      const deleted = before.filter((id) => !loaded.has(id)).length;
      requireFewDeletions(label, guard, { existing: before.length, deleted }, loaded.size);
      const show = async (): Promise<void> => {
        if (loadName === undefined) return;
        shelf().rows = loaded;
        unfinished.delete(loadName);
      };
      return { rows_deleted: deleted, ...changeOf(show) };
    },
    giveUp: async () => changeOf(async () => void unfinished.delete(loadName ?? "")),
    close: async () => undefined,
  };
}

/** There are no transactions: nothing is to be rolled back. */
function changeOf(commit: () => Promise<void>): Uncommitted {
  return { transaction: undefined, commit, rollback: async () => undefined };
}

function chooseKey({ key, target, columns }: Pick<SinkRequest<ShelfTarget>, "key" | "target" | "columns">) {
  const chosen = key.length > 0 ? key : (shelves.get(target.shelf)?.key ?? []);
  if (chosen.length === 0) throw new VitrinaError("KEY_MISSING", "A new shelf needs a key.");
  const unknown = chosen.filter((name) => !columns.some((column) => column.name === name));
  if (unknown.length > 0) throw new VitrinaError("KEY_NOT_IN_QUERY", `The query has no column ${unknown.join(", ")}.`);
  return chosen;
}

/** Turns rows into what a shelf keeps: the last of each key, without those that it refuses. */
function rowReader(columns: readonly Column[], key: readonly string[], { trim = false }: ShelfOptions) {
  const problemOf = (cells: Cells): string | undefined => {
    if (key.some((name) => cells[name] === null)) return "the key has no value";
    const wrong = columns.find(({ name, type }) => type === "integer" && !/^-?\d+$/.test(cells[name] ?? "0"));
    return wrong && `${wrong.name} is not a number`;
  };
  return (given: readonly Row[]): { rows: Rows; present: Set<string>; result: BatchResult } => {
    const rows: Rows = new Map();
    const present = new Set<string>();
    const rejects: RejectedRow[] = [];
    for (const row of given) {
      const cells = Object.fromEntries(
        columns.map(({ name }, index) => [name, (trim ? row[index]?.trim() : row[index]) ?? null]),
      );
      const reason = problemOf(cells);
      const id = JSON.stringify(key.map((name) => cells[name]));
      present.add(id);
      if (reason === undefined) rows.set(id, cells);
      else rejects.push({ row, code: "ROW_REFUSED", error: `${reason}.`, reason: `${reason}.` });
    }
    const rows_deduplicated = given.length - rejects.length - rows.size;
    const result = { rows_written: rows.size, rows_unchanged: 0, rows_deduplicated, rows_deleted: 0, rejects };
    return { rows, present, result };
  };
}

const NO_RANGE = { key_min: null, key_max: null, incremental_key_min: null, incremental_key_max: null };

function compare(request: ComparisonRequest<ShelfTarget, ShelfOptions>): Comparison {
  const { target, columns, options } = request;
  const key = chooseKey(request);
  const read = rowReader(columns, key, options);
  const held: Rows = new Map(shelves.get(target.shelf)?.rows);
  const source = { rows: 0, rows_duplicate: 0, rows_refused: 0 };
  const expected: Rows = new Map();
  const pending = new Set<string>();
  const keyOf = (id: string): Record<string, string | null> =>
    Object.fromEntries(key.map((name, index) => [name, JSON.parse(id)[index]]));
  const differing = (id: string): string[] =>
    columns.map(({ name }) => name).filter((name) => expected.get(id)?.[name] !== held.get(id)?.[name]);
  return {
    key,
    columns: columns.map(({ name }) => name),
    async add(batch, standing) {
      const { rows, result } = read(batch.rows());
      source.rows += batch.count;
      source.rows_refused += result.rejects.length;
      source.rows_duplicate += batch.count - result.rejects.length - rows.size;
      for (const [id, cells] of rows) expected.set(id, cells);
      if (standing === "pending") for (const id of rows.keys()) pending.add(id);
    },
    async finish(limit) {
      const listed = (ids: readonly string[]) => ({ count: ids.length, keys: ids.slice(0, limit).map(keyOf) });
      const wrong = [...expected.keys()].filter((id) => differing(id).length > 0);
      const settled = wrong.filter((id) => !pending.has(id));
      const different = settled.filter((id) => held.has(id));
      return {
        source: { ...source, ...NO_RANGE },
        target: { rows: held.size, ...NO_RANGE },
        missing: listed(settled.filter((id) => !held.has(id))),
        extra: listed([...held.keys()].filter((id) => !expected.has(id))),
        different: {
          count: different.length,
          keys: different.slice(0, limit).map((id) => ({ key: keyOf(id), columns: differing(id) })),
        },
        pending: listed(wrong.filter((id) => pending.has(id))),
      };
    },
    close: async () => undefined,
  };
}
