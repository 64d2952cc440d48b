// Does a row cost more in a large table, and does the runner need more memory?
import { peakMemory, startRunner } from "../support/runner.mjs";
import { fillTable, LARGE_QUERY } from "../support/source-data.mjs";
import { firstLoad, INCREMENTAL } from "./loads.mjs";

const FACTOR = 5;
const MEMORY_LIMIT_MB = 200;

/** Each with a runner of its own, so that the peak is that of this load. */
const load = (name, dataPath, large) => async (world) => {
  const rows = large ? world.rows * FACTOR : world.rows;
  const [connection, source] = dataPath === "stream" ? ["elsewhere", world.elsewhere] : ["main", world.admin];
  const config = { ...INCREMENTAL, source_connection: connection, batch_size: 5000 };
  const query = large ? { source_query: LARGE_QUERY } : {};
  const expected = { data_path: dataPath, rows_written: rows };
  await world.runner.stop();
  const runner = await startRunner(world);
  try {
    const { ms } = await firstLoad(world, { ...config, ...query }, expected, source);
    const peak = await peakMemory(runner.pid);
    const memory = peak === undefined ? "memory unknown" : `runner at most ${peak.toFixed(0)} MB`;
    const verdict = peak > MEMORY_LIMIT_MB ? ` (more than the ${MEMORY_LIMIT_MB} MB aimed for)` : "";
    // Scaled to the same number of rows.
    return { [name]: { ms: (ms / rows) * world.rows, note: `${memory}${verdict}` } };
  } finally {
    await runner.stop();
    world.runner = await startRunner(world);
  }
};

export default {
  name: "growth",
  onlyInFullBench: true,
  maxRounds: 3,
  async setUp(world) {
    for (const client of [world.admin, world.elsewhere]) {
      await fillTable(client, "content.title_large", world.rows * FACTOR);
    }
  },
  async tearDown(world) {
    for (const client of [world.admin, world.elsewhere]) await client.query("DROP TABLE content.title_large");
  },
  steps: [
    { gives: ["push-down, 1 ×"], measure: load("push-down, 1 ×", "push-down", false) },
    { gives: ["push-down, 5 ×"], measure: load("push-down, 5 ×", "push-down", true) },
    { gives: ["stream, 1 ×"], measure: load("stream, 1 ×", "stream", false) },
    { gives: ["stream, 5 ×"], measure: load("stream, 5 ×", "stream", true) },
  ],
  ratios: [
    {
      name: "growth",
      title: "Cost per row with five times the rows ÷ with the rows of the other benches (same database)",
      ours: "push-down, 5 ×",
      reference: "push-down, 1 ×",
      target: 1.15,
    },
    {
      name: "growth-stream",
      title: "The same between two databases",
      ours: "stream, 5 ×",
      reference: "stream, 1 ×",
      target: 1.15,
    },
  ],
};
