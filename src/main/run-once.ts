import { setTimeout as delay } from "node:timers/promises";
import { count, plural } from "../domain/counted.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import type { Run } from "../domain/run.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { RunHistory } from "../meta-store/ports/runs.ts";

const LOOK_EVERY_MS = 100;
const MOST_PIPELINES = 200;

type Say = (text: string) => void;

/** Runs the named pipelines that have never run, shows their progress, and ends with a table of what was built. */
export async function runOnce(
  store: Pick<MetaStore, "pipelines" | "requests" | "runs">,
  names: readonly string[],
  interrupted: () => boolean,
  say: Say,
): Promise<void> {
  const { items } = await store.pipelines.list({ limit: MOST_PIPELINES });
  const waiting = await neverRun(
    store.runs,
    items.filter(({ name }) => names.includes(name)),
  );
  if (waiting.length > 0) say(`Running ${waiting.map(({ name }) => name).join(", ")} for the first time …`);
  for (const { id } of waiting) await store.requests.run(id, "api");
  const runs = await Promise.all(waiting.map((pipeline) => followRun(store.runs, pipeline, interrupted, say)));
  const rows = waiting.flatMap((pipeline, index) => tableRow(pipeline, runs[index]));
  if (rows.length > 0) say(`\n${formatTable(["mart", "status", "rows read", "rows written", "seconds"], rows)}`);
}

async function neverRun(history: RunHistory, pipelines: readonly Pipeline[]): Promise<Pipeline[]> {
  const lastRuns = await Promise.all(pipelines.map(({ id }) => history.list(id, { limit: 1 }, { kind: "load" })));
  return pipelines.filter(
    ({ enabled, status }, index) => enabled && status === "IDLE" && lastRuns[index]?.items.length === 0,
  );
}

async function followRun(
  history: RunHistory,
  pipeline: Pipeline,
  interrupted: () => boolean,
  say: Say,
): Promise<Run | undefined> {
  let shownBatches = 0;
  while (!interrupted()) {
    const [run] = (await history.list(pipeline.id, { limit: 1 }, { kind: "load" })).items;
    if (run !== undefined && run.batches > shownBatches) {
      shownBatches = run.batches;
      say(`  ${pipeline.name}: ${plural(run.rows_read, "row")}`);
    }
    if (run !== undefined && run.status !== "RUNNING") {
      if (run.error !== null) say(`  ${pipeline.name} failed: ${run.error}`);
      return run;
    }
    await delay(LOOK_EVERY_MS);
  }
  return undefined;
}

function tableRow(pipeline: Pipeline, run: Run | undefined): string[][] {
  if (run === undefined) return [];
  const seconds = ((run.finished_at ?? run.started_at).getTime() - run.started_at.getTime()) / 1000;
  return [[pipeline.target_table, run.status, count(run.rows_read), count(run.rows_written), seconds.toFixed(2)]];
}

function formatTable(header: readonly string[], rows: readonly string[][]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const alignRight = (column: number): boolean => column >= 2;
  return all
    .map((row) =>
      row
        .map((cell, column) =>
          alignRight(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join("  "),
    )
    .map((line) => `  ${line}`)
    .join("\n");
}
