// A runner with nothing to do: what it costs must not grow with the number of pipelines.
import { setTimeout as delay } from "node:timers/promises";
import { createPipeline, processorSeconds, startRunner } from "../support/runner.mjs";
import { INCREMENTAL } from "./loads.mjs";

const FEW = 10;
const MANY = 1000;
/** Server statistics may be up to ten seconds late, and the pipelines were created just before. */
const SETTLE_MS = 12_000;
const MEASURED_SECONDS = 30;

/** Never due while the bench runs, but the scheduler has to know that. */
const ONCE_A_YEAR = "0 3 1 1 * UTC";

async function ensurePipelines(world, wanted) {
  const { rows } = await world.admin.query("SELECT count(*)::int AS existing FROM etl.etl_pipelines");
  for (let count = rows[0].existing; count < wanted; count++) {
    await createPipeline(world, { ...INCREMENTAL, schedule_interval: ONCE_A_YEAR });
  }
}

/** Every statement of an idle runner is a transaction of its own. Asked from another database, so as not to count itself. */
async function transactions({ elsewhere }) {
  const { rows } = await elsewhere.query(
    "SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = 'bench'",
  );
  return Number(rows[0].count);
}

const idle = (name, count) => async (world) => {
  await world.runner.stop();
  await ensurePipelines(world, count);
  const runner = await startRunner(world);
  try {
    await delay(SETTLE_MS);
    const [cpuBefore, before] = [await processorSeconds(runner.pid), await transactions(world)];
    await delay(MEASURED_SECONDS * 1000);
    const [cpuAfter, after] = [await processorSeconds(runner.pid), await transactions(world)];
    const cpu = (1000 * (cpuAfter - cpuBefore)) / MEASURED_SECONDS;
    const queries = (after - before) / MEASURED_SECONDS;
    const note = `and ${cpu.toFixed(1)} ms of processor time per second`;
    // The ratio is that of the queries: they are counted exactly, while so little processor time is mostly noise.
    return { [name]: { ms: queries, note } };
  } finally {
    await runner.stop();
    world.runner = await startRunner(world);
  }
};

export default {
  name: "idle",
  onlyInFullBench: true,
  maxRounds: 1,
  unit: "queries per second",
  async setUp({ admin }) {
    await admin.query("ALTER SYSTEM SET autovacuum = off");
    await admin.query("SELECT pg_reload_conf()");
  },
  async tearDown({ admin }) {
    await admin.query("DELETE FROM etl.etl_pipelines");
    await admin.query("ALTER SYSTEM RESET autovacuum");
    await admin.query("SELECT pg_reload_conf()");
  },
  steps: [
    { gives: ["10 idle pipelines"], measure: idle("10 idle pipelines", FEW) },
    { gives: ["1,000 idle pipelines"], measure: idle("1,000 idle pipelines", MANY) },
  ],
  ratios: [
    {
      name: "idle",
      title: "Queries per second of an idle runner with 1,000 enabled pipelines ÷ with 10",
      ours: "1,000 idle pipelines",
      reference: "10 idle pipelines",
      target: 1.1,
    },
  ],
};
