import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { askedRuns } from "./asked-runs.ts";
import { type Chaos, DATA_PATH, diedHolding, endLeaseOf, openChaos, type Path } from "./chaos.ts";
import {
  BATCH,
  createPipeline,
  createSource,
  differences,
  INCREMENTAL,
  KINDS,
  type Kind,
  loadTables,
  missingBehindCheckpoint,
  NEW_TARGET,
  OLD_TARGET,
  ROWS,
} from "./chaos-kinds.ts";
import { statesOf, type Watcher, watch } from "./chaos-watcher.ts";
import { LONG } from "./long.ts";

/** As many processes at once as two cores can start comfortably. */
const AT_ONCE = 3;

const BATCHES = ROWS / BATCH;

/** Where a runner of this kind and path can be killed: whenever something is about to become durable, or just did. */
export function faultPointsOf({ mode }: Kind, path: Path): string[] {
  const isFull = mode === "full";
  return [
    "claimed:1",
    "transaction_begun:1",
    "prepared:1",
    ...(path === "push-down" ? [] : ["batch_read:4"]),
    ...(path === "rows" ? ["batch_transformed:4"] : []),
    "transaction_begun:4",
    "batch_staged:4",
    "batch_applied:4",
    "checkpoint_recorded:4",
    "data_committed:4",
    "batch_committed:4",
    ...(isFull ? [`batch_applied:${BATCHES + 1}`] : []),
    "load_read:1",
    ...(isFull ? ["load_applied:1", "load_committed:1"] : ["watermark_moved:1"]),
    "before_finish:1",
  ];
}

type Kills = readonly (readonly [Kind, readonly string[]])[];

/** Through a code task rows come in no order, so a new target or a text key makes no difference there. */
const EVERY_KILL: Readonly<Record<Path, Kills>> = {
  "push-down": everyKill("push-down", KINDS),
  stream: everyKill("stream", KINDS),
  rows: everyKill("rows", [OLD_TARGET, INCREMENTAL]),
  elsewhere: everyKill("elsewhere", KINDS),
};

/** Each point once, and again where a kind of load does something of its own there. Other paths are only run at length. */
const TYPICAL_KILLS: Readonly<Record<Path, Kills>> = {
  "push-down": [
    [OLD_TARGET, onceEach(faultPointsOf(OLD_TARGET, "push-down"))],
    [NEW_TARGET, ["load_committed:1"]],
    [INCREMENTAL, ["watermark_moved:1"]],
  ],
  stream: [],
  rows: [[OLD_TARGET, ["batch_read:4", "batch_transformed:4"]]],
  elsewhere: [],
};

/** The last one of each name: with batches behind it. */
function onceEach(points: readonly string[]): string[] {
  return [...new Map(points.map((point) => [point.split(":")[0], point])).values()];
}

function everyKill(path: Path, kinds: readonly Kind[]): Kills {
  return kinds.map((kind) => [kind, faultPointsOf(kind, path)]);
}

export const killsOf = (path: Path, long = LONG): Kills => (long ? EVERY_KILL : TYPICAL_KILLS)[path];

/** Where a runner can be killed in the middle of a reconcile; see tests/chaos/reconcile.test.ts. */
export const RECONCILE_POINTS = ["reconcile_batch:2", "reconcile_read:1", "before_finish:1"];

interface Killed {
  readonly pipeline: Pipeline;
  readonly missing: number;
}

/**
 * One pipeline and one runner per kind of load and fault point. The pipelines of a kind are all alike: each runner
 * takes one of them and is killed at its point. In the end one runner without a fault takes over all of them.
 */
export function describeKills(path: Path): void {
  const kills = killsOf(path);
  const killed = new Map<string, Killed>();
  let chaos: Chaos;
  let before: Map<string, string>;
  let watcher: Watcher | undefined;

  beforeAll(async () => {
    chaos = await openChaos(path);
    await createSource(chaos);
    const pipelines: Pipeline[][] = [];
    for (const [k, [kind, points]] of kills.entries()) {
      const create = (_: string, n: number) => createPipeline(chaos, kind, path, `kind${k}_p${n}`);
      pipelines.push(await Promise.all(points.map(create)));
    }
    const targets = pipelines.flat().map(({ target_table }) => target_table);
    before = await statesOf(chaos.target, targets);
    watcher = watch(chaos.target, targets);
    for (const [k, [kind, points]] of kills.entries()) {
      await Promise.all((pipelines[k] ?? []).map(({ id }) => chaos.store.requests.run(id, "api")));
      await killAll(kind, points);
    }
    await chaos.query("UPDATE etl.etl_pipelines SET enabled = true");
    chaos.runner(undefined, { RUNNER_CONCURRENCY: "6" });
    await chaos.atRest();
    await watcher.stop();
  });

  async function killAll(kind: Kind, points: readonly string[]): Promise<void> {
    const waiting = [...points];
    const killNext = async (): Promise<void> => {
      for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
        killed.set(`${kind.name} ${point}`, await killOne(chaos, kind, point));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, killNext));
  }

  afterAll(async () => {
    await watcher?.stop().catch(() => undefined);
    await chaos?.close();
  });

  describe.each(kills.map(([kind, points]) => ({ ...kind, kind, points })))(`SIGKILL, $name, by ${path}`, (given) => {
    const { kind } = given;
    it.each(given.points)("R4.4 R4.7 at %s nothing is lost, doubled, or seen by halves", async (point) => {
      const { pipeline, missing } = killed.get(`${kind.name} ${point}`) as Killed;
      const { id, target_table } = pipeline;
      expect(missing).toBe(0);
      expect(await differences(chaos, target_table)).toBe(0);
      expect(await chaos.store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
      expect(await chaos.store.state.get(id)).toMatchObject({ scanPosition: null });
      await requireAddedUp(chaos, kind, path, pipeline, point);
      if (kind.mode === "full") {
        const after = (await statesOf(chaos.target, [target_table])).get(target_table);
        expect(watcher?.seen(target_table)).toEqual([before.get(target_table), after]);
      }
    });
  });

  it("leaves no load tables behind; and the readers did look", async () => {
    expect(await loadTables(chaos)).toEqual([]);
    expect(watcher?.looks()).toBeGreaterThan(10);
  });
}

/** Starts a runner that dies at the point, and keeps the pipeline it held from everybody until all are killed. */
async function killOne(chaos: Chaos, kind: Kind, point: string): Promise<Killed> {
  const runner = chaos.runner(`${point}:kill`);
  await diedHolding(runner, point);
  const [held] = await chaos.query(
    `UPDATE etl.etl_pipelines p SET enabled = false FROM etl.etl_runs r JOIN etl.etl_runners n ON n.id = r.runner_id
      WHERE r.pipeline_id = p.id AND n.pid = $1 RETURNING p.id`,
    [runner.pid],
  );
  await endLeaseOf(chaos, runner);
  const pipeline = await chaos.store.pipelines.get(held?.["id"] as never);
  return { pipeline, missing: await missingBehindCheckpoint(chaos, kind, pipeline) };
}

/** Counters are committed with their rows: over all runs each row counts once, however often it was read for nothing. */
async function requireAddedUp(chaos: Chaos, kind: Kind, path: Path, { id }: Pipeline, point: string): Promise<void> {
  const [last, lost, ...more] = await askedRuns(chaos.store, id);
  expect(more).toEqual([]);
  expect(lost).toMatchObject({ status: "FAILED", error_code: "RUNNER_LOST" });
  expect(last).toMatchObject({ status: "SUCCESS", trigger: "recovery", error: null, data_path: DATA_PATH[path] });
  // A full load that became visible before its run could end starts over, and finds nothing to do.
  const startedAnew = kind.mode === "full" && /^(load_committed|before_finish)/.test(point);
  // Counters in another database than the rows follow them; what is killed in between is missing in the history.
  const uncounted = path === "elsewhere" && point.startsWith("data_committed") ? 1 : 0;
  const uncountedDeletions = path === "elsewhere" && point.startsWith("load_committed");
  const sum = (field: "rows_read" | "rows_written" | "rows_deleted" | "batches"): number =>
    (last?.[field] ?? 0) + (lost?.[field] ?? 0);
  const batches = (startedAnew ? 2 : 1) * BATCHES - uncounted;
  expect({ batches: sum("batches"), read: sum("rows_read"), deleted: sum("rows_deleted") }).toEqual({
    batches,
    read: batches * BATCH,
    deleted: uncountedDeletions ? 0 : kind.deleted,
  });
  if (uncounted === 0) expect(sum("rows_written")).toBe(kind.written);
  // A target that was created in the meantime is compared the next time.
  const strategy = path === "rows" && kind.mode === "full" ? "shadow and merge" : kind.strategy;
  expect([strategy, ...(startedAnew ? ["compare and apply"] : [])]).toContain(last?.strategy);
}
