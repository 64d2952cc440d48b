import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { STATE_OF } from "./chaos-watcher.ts";
import type { TestDatabase } from "./database.ts";
import { openStand } from "./stand.ts";
import { until } from "./until.ts";
import { roleEnvironment, type VitrinaProcess } from "./vitrina-process.ts";

/**
 * How rows travel. It follows from what runner and pipeline are given: a login that may do both sides, a code task, a
 * target in another database (then by stream too, but with a checkpoint of its own beside the data).
 */
export type Path = "push-down" | "stream" | "rows" | "elsewhere";

/** As the run record names it. */
export const DATA_PATH = { "push-down": "push-down", stream: "stream", rows: "rows", elsewhere: "stream" } as const;

/** The shortest lease there is: a frozen runner is replaced after three seconds. */
export const LEASE_MS = 3000;
export const SHORT_LEASE = { LEASE_SECONDS: String(LEASE_MS / 1000) };
/** A runner that lives keeps this one on the busiest machine. That of a dead one is ended by hand. */
const LONG_LEASE = { LEASE_SECONDS: "120" };

export const COPY_TASK = "copy";
/** Makes the target's key, `label`, from a column that is not a key of the target. */
export const LABEL_TASK = "label";
const TASKS = `export default ({ defineTask, z }) => [defineTask({
  name: "${COPY_TASK}", description: "Copies each row.", params: z.strictObject({}), run: (rows) => rows.map((row) => ({ ...row })) }),
  defineTask({ name: "${LABEL_TASK}", description: "Makes a key.", columns: [{ name: "label", type: "text" }],
    run: (rows) => rows.map((row) => ({ ...row, label: "part " + row.part })) })];`;

/** Databases of its own, and real runner processes on them that end with the test, whatever happens. */
export interface Chaos {
  /** Source and meta-store. */
  readonly database: TestDatabase;
  /** The same, unless the path is `elsewhere`. */
  readonly target: TestDatabase;
  readonly store: MetaStore;
  query: TestDatabase["query"];
  create(config: object): Promise<Pipeline>;
  /** `fault` as in VITRINA_FAULT; `more` wins over the usual environment. One that freezes has the short lease. */
  runner(fault?: string, more?: Record<string, string>): VitrinaProcess;
  /** Waits until no pipeline runs or waits. */
  atRest(): Promise<void>;
  close(): Promise<void>;
}

export async function openChaos(path: Path, given?: TestDatabase): Promise<Chaos> {
  const stand = await openStand(given && { database: given });
  const { database, store } = stand;
  const elsewhere = path === "elsewhere" ? await openStand() : undefined;
  if (elsewhere !== undefined) stand.onClose(elsewhere.close);
  const target = elsewhere?.database ?? database;
  for (const { query } of new Set([database, target])) await query(STATE_OF);
  const tasks = await mkdtemp(join(tmpdir(), "vitrina-chaos-"));
  await writeFile(join(tasks, "tasks.mjs"), TASKS);
  return {
    database,
    target,
    store,
    query: database.query,
    create: (config) => store.pipelines.create(newPipelineSchema.parse(config), "chaos"),

    runner(fault, more = {}) {
      const env = {
        ...roleEnvironment({ ...database.urls, writer: target.urls.writer }),
        ...(path === "push-down" && { LOADER_DATABASE_URL: database.urls.loader as string }),
        ...(path === "rows" && { TASKS_DIR: tasks }),
        ...(fault !== undefined && { VITRINA_FAULT: fault }),
        ...(fault?.includes(":stop") ? SHORT_LEASE : LONG_LEASE),
        RUNNER_POLL_SECONDS: "1",
        RUNNER_CONCURRENCY: "1",
        STOP_TIMEOUT_SECONDS: "1",
        LOG_LEVEL: "debug",
        ...more,
      };
      return stand.spawn(["runner"], { env });
    },

    async atRest() {
      const busy = "SELECT FROM etl.etl_pipelines WHERE status NOT IN ('IDLE', 'FAILED', 'PAUSED')";
      const isOver = async () => (await database.query(busy)).length === 0;
      await until("every pipeline is at rest", isOver);
    },

    async close() {
      await stand.close();
      await rm(tasks, { recursive: true, force: true });
    },
  };
}

/** Proves that the fault ended the process, and lets others have what it held. */
export async function diedAt(chaos: Chaos, runner: VitrinaProcess, point: string): Promise<void> {
  await diedHolding(runner, point);
  await endLeaseOf(chaos, runner);
}

/** As if the time of its lease had passed: a dead runner is not waited for. */
export async function endLeaseOf({ query }: Chaos, { pid }: VitrinaProcess): Promise<void> {
  await query(
    `UPDATE etl.etl_runs r SET lease_expires_at = clock_timestamp() FROM etl.etl_runners n
      WHERE n.id = r.runner_id AND n.pid = $1 AND r.status = 'RUNNING'`,
    [pid],
  );
}

/** Proves that the fault ended the process; what it held stays its own until its lease is ended. */
export async function diedHolding(runner: VitrinaProcess, point: string): Promise<void> {
  await faulted(runner, point, "kill");
  const end = await runner.exited;
  if (end !== "SIGKILL") throw new Error(`The runner ended with ${end}, not by SIGKILL:\n${runner.output()}`);
}

/** `point` with or without its ordinal. */
export async function faulted(runner: VitrinaProcess, point: string, action: string): Promise<void> {
  await printed(runner, faultLine(point, action));
}

/** Waits for a line of a runner; fails at once when it ends without it. */
export async function printed({ child, output }: VitrinaProcess, line: RegExp): Promise<void> {
  const isPrinted = (): boolean => {
    // Asked before looking: what a process prints last arrives before its end is known.
    const isOver = child.exitCode !== null || child.signalCode !== null;
    if (line.test(output())) return true;
    if (isOver && child.stderr?.readableEnded && child.stdout?.readableEnded) {
      throw new Error(`The runner ended without printing ${line}:\n${output()}`);
    }
    return false;
  };
  await until(`the runner prints ${line}`, isPrinted);
}

/** What a process prints when a fault happens. */
export function faultLine(point: string, action: string): RegExp {
  return new RegExp(`^FAULT ${point.split(":")[0]} ${action}$`, "m");
}
