import type { FollowRound } from "../../connectors/follower.ts";
import { batchOfCopyText, type RowBatch } from "../../connectors/row-batch.ts";
import type { TargetKey } from "../../connectors/sink.ts";
import { endAskedFor } from "../../domain/pipeline-status.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import { transformed } from "../execute-batch.ts";
import { keyTexts } from "../kept-keys.ts";
import type { EarlyEnd, Load } from "../run-context.ts";
import { writeAside } from "../write-aside.ts";

/** More of them make the statement that reads their rows slower than a second one. */
const MOST_KEYS_PER_CHUNK = 5000;
const KEYS_PER_ROW_OF_BATCH = 5;

/** The rows of some keys, as the target gets them. */
interface Chunk {
  readonly keys: readonly TargetKey[];
  readonly read: number;
  readonly output: RowBatch;
  readonly readMs: number;
}

/**
 * Brings the target's rows of these keys to what the query has for them in the round's snapshot, chunk by chunk, each a
 * batch of its own. Returns why it stopped early, if it did: then the position stays, and the next round does them again.
 */
export async function moveKeys(
  load: Load,
  round: FollowRound,
  keys: readonly TargetKey[],
): Promise<EarlyEnd | undefined> {
  const { control } = load;
  const chunks = chunksOf(load, round, keys);
  let ahead = next(chunks);
  for (;;) {
    const end = control.stopRequest();
    if (end !== undefined) return end;
    const chunk = await ahead;
    if (chunk === undefined) return undefined;
    ahead = next(chunks);
    const committed = await writeChunk(load, chunk);
    await faultPoint("chunk_committed");
    const asked = endAskedFor(committed.lease.status);
    if (asked !== undefined) return asked;
  }
}

/** The next chunk is read while the one before it is written. */
function next(chunks: AsyncGenerator<Chunk, void>): Promise<Chunk | undefined> {
  const chunk = chunks.next().then(({ value }) => value ?? undefined);
  chunk.catch(() => undefined); // handled when it is awaited
  return chunk;
}

async function writeChunk(load: Load, { keys, read, output, readMs }: Chunk) {
  const { parts, pipeline, writer } = load;
  const named = keys.map((key) => Object.fromEntries(writer.key.map((name, place) => [name, key[place] ?? null])));
  // Whatever becomes of its rows now: written, gone, or refused again.
  const settledRejects = await parts.store.rejects.ofKeys(pipeline.id, named);
  return writeAside(load, { read, output, readMs, settledRejects, keys });
}

/** Chunks become smaller where rows are so wide that they would fill the memory. */
export async function* chunksOf(
  load: Load,
  round: FollowRound,
  keys: readonly TargetKey[],
): AsyncGenerator<Chunk, void> {
  let size = Math.min(MOST_KEYS_PER_CHUNK, KEYS_PER_ROW_OF_BATCH * load.progress.limits.batchSize);
  for (let at = 0; at < keys.length; ) {
    const some = keys.slice(at, at + size);
    const startedAt = performance.now();
    const rows = await readRows(round, some);
    if (rows === undefined) {
      size = Math.ceil(some.length / 2);
      continue;
    }
    const readMs = performance.now() - startedAt;
    await faultPoint("batch_read");
    const output = await transformed(load, rows);
    yield { keys: some, read: rows.count, output, readMs };
    at += some.length;
  }
}

const MOST_ROWS_PER_READ = 1_000_000;

/** Undefined where they do not fit into one batch, and can be had in smaller parts. */
async function readRows(round: FollowRound, keys: readonly TargetKey[]): Promise<RowBatch | undefined> {
  const reader = await round.open(keys);
  try {
    const parts: RowBatch[] = [];
    for (;;) {
      const batch = await reader.read(MOST_ROWS_PER_READ);
      if (batch.isLast && parts.length === 0) return batch;
      // A single key has all its rows in one batch, whatever their size: what is not among them is deleted.
      if (parts.length === 0 || keys.length === 1) parts.push(batch);
      if (batch.isLast) return keys.length === 1 ? joined(parts) : undefined;
    }
  } finally {
    await reader.close();
  }
}

function joined(parts: readonly RowBatch[]): RowBatch {
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  return batchOfCopyText(Buffer.concat(parts.flatMap((part) => part.copyText())), count);
}

/** The keys of the rows that the query, and what code tasks make of it, still has. */
export function keysOfRows({ writer, transform }: Load, output: RowBatch): TargetKey[] {
  const texts = new Set(keyTexts(output.rows(), writer.key, transform.columns));
  return [...texts].map((text) => JSON.parse(text) as TargetKey).filter((key) => key.every((part) => part !== null));
}
