import { batchOfRows, type RowBatch } from "../connectors/row-batch.ts";
import type { Row } from "../domain/row.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { RejectToRetry } from "../meta-store/ports/rejects.ts";
import { transformed } from "./execute-batch.ts";
import type { RunControl } from "./executor.ts";
import type { Load } from "./load.ts";
import type { RunReport } from "./run-report.ts";
import { writeAside } from "./write-aside.ts";

/** How many keys one question to the source names at most. */
const KEYS_AT_ONCE = 500;

type RejectStore = Pick<MetaStore, "rejects">;

/**
 * Before an incremental load: reads the keys of the marked rejects anew, because they lie before the watermark and no
 * load would meet them again. Never the values that were kept, which may be old by now. They go the way of every
 * batch, through tasks, writer and fence; the marks go in the same transaction, and the position stays where it is.
 */
export async function retryRejects(
  store: RejectStore,
  load: Load,
  control: RunControl,
  report: RunReport,
): Promise<void> {
  if (load.incremental === undefined) return; // a full load meets every row
  while (control.stopRequest() === undefined) {
    const marked = await store.rejects.toRetry(load.pipeline.id, KEYS_AT_ONCE);
    if (marked.length === 0) return;
    await retryChunk(store, load, control, marked, report);
  }
}

async function retryChunk(
  store: RejectStore,
  load: Load,
  { endSignal }: RunControl,
  marked: readonly RejectToRetry[],
  report: RunReport,
): Promise<void> {
  const { writer, columns, hasTasks } = load;
  const isReadable = writer.key.every((name) => columns.some((column) => column.name === name));
  const findable = isReadable
    ? marked.filter(({ key }) => writer.key.every((name) => (key[name] ?? null) !== null))
    : [];
  const startedAt = performance.now();
  const batch = await readKeys(load, findable);
  const readMs = performance.now() - startedAt;
  const output = await transformed(load, batch, endSignal);

  const found = new Set(output.rows().map((row) => keyTextOf(load, row)));
  const isFound = ({ key }: RejectToRetry): boolean => found.has(JSON.stringify(writer.key.map((name) => key[name])));
  // Behind a task the row may have another key than in the source, so not to find it there does not mean it is gone.
  const isSettled = (reject: RejectToRetry): boolean => findable.includes(reject) && (!hasTasks || isFound(reject));
  const settled = marked.filter(isSettled);
  const unfound = marked.filter((reject) => !isSettled(reject));
  if (unfound.length > 0) await giveUp(store, load, unfound, isReadable);
  if (settled.length > 0) {
    const settledRejects = settled.map(({ id }) => id);
    await writeAside(load, { read: batch.count, output, readMs, settledRejects }, report);
  }
  const gone = settled.filter((reject) => !isFound(reject)).length;
  report.log.info(
    { rejects: marked.length, rows: batch.count, gone, not_found: unfound.length },
    "rejects tried again",
  );
}

/** A key is unique in the target; should the source have it several times, all its rows count. */
async function readKeys(
  { source, read, writer, hasTasks }: Load,
  rejects: readonly RejectToRetry[],
): Promise<RowBatch> {
  if (rejects.length === 0) return batchOfRows([]);
  const texts = new Set(rejects.map(({ key }) => JSON.stringify(writer.key.map((name) => key[name]))));
  const keys = [...texts].map((text) => JSON.parse(text) as string[]);
  const only = { columns: writer.key, keys, byText: hasTasks };
  const reader = await source.open({ ...read, after: null, only });
  try {
    const rows: Row[] = [];
    for (;;) {
      const batch = await reader.read(KEYS_AT_ONCE);
      rows.push(...batch.rows());
      if (batch.isLast) return batchOfRows(rows);
    }
  } finally {
    await reader.close();
  }
}

async function giveUp(
  store: RejectStore,
  { pipeline, writer }: Load,
  unfound: readonly RejectToRetry[],
  isReadable: boolean,
): Promise<void> {
  const reason = isReadable
    ? "The row could not be found again by its key: it has none, or a code task made it."
    : `The row cannot be found again: the query does not return its key (${writer.key.join(", ")}), a code task makes it.`;
  const ids = unfound.map(({ id }) => id);
  await store.rejects.giveUp(pipeline.id, ids, {
    code: "REJECT_NOT_FOUND",
    error: `${reason} Reset the state to read everything again.`,
  });
}

function keyTextOf({ transform, writer }: Load, row: Row): string {
  const textOf = (name: string) => row[transform.columns.findIndex((column) => column.name === name)] ?? null;
  return JSON.stringify(writer.key.map(textOf));
}
