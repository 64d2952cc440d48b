// A runner as in production: a process of its own, started by the command that a user would type.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { newPipelineSchema } from "../../dist/domain/pipeline.js";

const COMMAND = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));
const TASKS = fileURLToPath(new URL("../tasks", import.meta.url));

const LOOK_EVERY_MS = 200;

export async function startRunner(world) {
  const child = spawn(process.execPath, [COMMAND, "runner"], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TASKS_DIR: TASKS, ...world.runnerEnvironment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let trouble = "";
  child.stderr.on("data", (chunk) => {
    trouble += chunk;
  });
  const exited = once(child, "exit");
  await untilRegistered(world, child, () => trouble);
  return {
    pid: child.pid,
    /** Repeating it changes nothing. */
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

async function untilRegistered({ admin }, child, trouble) {
  for (;;) {
    const { rows } = await admin.query("SELECT FROM etl.etl_runners WHERE pid = $1", [child.pid]);
    if (rows.length > 0) return;
    if (child.exitCode !== null) throw new Error(`The runner ended with ${child.exitCode}:\n${trouble()}`);
    await delay(LOOK_EVERY_MS);
  }
}

let created = 0;

/** A pipeline with a target of its own that does not exist yet. */
export async function createPipeline({ store }, config) {
  created += 1;
  const whole = { name: `bench_${created}`, target_table: `analytics.bench_${created}`, target_key: ["id"], ...config };
  return store.pipelines.create(newPipelineSchema.parse({ create_target: true, ...whole }), "bench");
}

/** Runs it once. The time is the run's own, from claim to end, as the run history shows it. */
export async function runPipeline({ store, admin }, pipeline) {
  await admin.query("CHECKPOINT");
  await store.requests.run(pipeline.id, "api");
  for (;;) {
    await delay(LOOK_EVERY_MS);
    const { status } = await store.pipelines.get(pipeline.id);
    if (status === "RUN_REQUESTED" || status === "RUNNING") continue;
    const [run] = (await store.runs.list(pipeline.id, { limit: 1 })).items;
    if (run.status !== "SUCCESS") throw new Error(`The run of ${pipeline.name} is ${run.status}: ${run.error}`);
    return { ...run, ms: run.finished_at.getTime() - run.started_at.getTime() };
  }
}

export async function dropPipeline({ store, admin }, pipeline) {
  await admin.query(`DROP TABLE IF EXISTS ${pipeline.target_table}`);
  await store.pipelines.delete(pipeline.id);
}

/** Highest resident memory of a process so far, in MB; undefined where the system does not tell. */
export async function peakMemory(pid) {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmHWM:\s+(\d+) kB/m.exec(status)?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

/** Forgets the peak, so that the next one is that of the next run. */
export async function resetPeakMemory(pid) {
  await writeFile(`/proc/${pid}/clear_refs`, "5").catch(() => undefined);
}

const TICKS_PER_SECOND = 100;

/** Seconds of processor time that a process has used; undefined where the system does not tell. */
export async function processorSeconds(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) return undefined;
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return (user + system) / TICKS_PER_SECOND;
}
