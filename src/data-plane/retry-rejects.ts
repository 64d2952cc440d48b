import { batchOfRows, type RowBatch } from "../connectors/row-batch.ts";
import type { Row } from "../domain/row.ts";
import type { RejectToRetry } from "../meta-store/ports/rejects.ts";
import { transformed } from "./execute-batch.ts";
import type { Load } from "./run-context.ts";
import { writeAside } from "./write-aside.ts";

const MOST_KEYS_PER_READ = 500;

/**
 * Before an incremental load or a round: reads the marked rejects from the source again by their keys, because they lie
 * before the watermark, or did not change, and no load would reach them. The values kept with a reject are not used: they may be out of date. The
 * rows take the path of every batch, through tasks, writer and fence; the marks are removed in the same transaction,
 * and the position stays where it is.
 */
export async function retryRejects(load: Load): Promise<void> {
  const { parts, pipeline, control } = load;
  if (load.scope === "everything") return; // a full load reads every row
  while (control.stopRequest() === undefined) {
    const marked = await parts.store.rejects.toRetry(pipeline.id, MOST_KEYS_PER_READ);
    if (marked.length === 0) return;
    await retryChunk(load, marked);
  }
}

async function retryChunk(load: Load, marked: readonly RejectToRetry[]): Promise<void> {
  const { writer, columns, plan, report } = load;
  const isReadable = writer.key.every((name) => columns.some((column) => column.name === name));
  const findable = isReadable
    ? marked.filter(({ key }) => writer.key.every((name) => (key[name] ?? null) !== null))
    : [];
  const startedAt = performance.now();
  const batch = await readKeys(load, findable);
  const readMs = performance.now() - startedAt;
  const output = await transformed(load, batch);

  const found = new Set(output.rows().map((row) => keyTextOf(load, row)));
  const isFound = ({ key }: RejectToRetry): boolean => found.has(JSON.stringify(writer.key.map((name) => key[name])));
  // A task may change the key, so a row that is not found by it in the source is not necessarily gone.
  const isSettled = (reject: RejectToRetry): boolean =>
    findable.includes(reject) && (plan.transforms.length === 0 || isFound(reject));
  const settled = marked.filter(isSettled);
  const unfound = marked.filter((reject) => !isSettled(reject));
  if (unfound.length > 0) await giveUp(load, unfound, isReadable);
  if (settled.length > 0) {
    const settledRejects = settled.map(({ id }) => id);
    await writeAside(load, { read: batch.count, output, readMs, settledRejects });
  }
  const gone = settled.filter((reject) => !isFound(reject)).length;
  report.log.info(
    { rejects: marked.length, rows: batch.count, gone, not_found: unfound.length },
    "rejects tried again",
  );
}

/** A key is unique in the target; if the source has it several times, all its rows count. */
async function readKeys({ source, read, writer, plan }: Load, rejects: readonly RejectToRetry[]): Promise<RowBatch> {
  if (rejects.length === 0) return batchOfRows([]);
  const texts = new Set(rejects.map(({ key }) => JSON.stringify(writer.key.map((name) => key[name]))));
  const keys = [...texts].map((text) => JSON.parse(text) as string[]);
  const only = { columns: writer.key, keys, byText: plan.transforms.length > 0 };
  const reader = await source.open({ ...read, after: null, only });
  try {
    const rows: Row[] = [];
    for (;;) {
      const batch = await reader.read(MOST_KEYS_PER_READ);
      rows.push(...batch.rows());
      if (batch.isLast) return batchOfRows(rows);
    }
  } finally {
    await reader.close();
  }
}

async function giveUp(
  { parts, pipeline, writer }: Load,
  unfound: readonly RejectToRetry[],
  isReadable: boolean,
): Promise<void> {
  const reason = isReadable
    ? "The row could not be found again by its key: it has none, or a code task made it."
    : `The row cannot be found again: the query does not return its key (${writer.key.join(", ")}), a code task makes it.`;
  const ids = unfound.map(({ id }) => id);
  await parts.store.rejects.giveUp(pipeline.id, ids, {
    code: "REJECT_NOT_FOUND",
    error: `${reason} Reset the state to read everything again.`,
  });
}

function keyTextOf({ transform, writer }: Load, row: Row): string {
  const textOf = (name: string) => row[transform.columns.findIndex((column) => column.name === name)] ?? null;
  return JSON.stringify(writer.key.map(textOf));
}
