// One row in a hundred changed: only those are read and written.
import { changesByOneStatement, singleStatement } from "../support/references.mjs";
import { createPipeline, dropPipeline, runPipeline } from "../support/runner.mjs";
import { changeOnePercent } from "../support/source-data.mjs";
import { INCREMENTAL, requireRun, timed } from "./loads.mjs";

const TARGET = "analytics.by_hand";
let pipeline;

async function newestStamp({ admin }) {
  return (await admin.query("SELECT max(modified)::text AS at FROM content.title")).rows[0].at;
}

async function measure(world, round) {
  const before = await newestStamp(world);
  const changed = await changeOnePercent(world.admin);
  const byHand = async () => {
    const ms = await timed(world, () => changesByOneStatement(world.admin, TARGET, before));
    return { "changes by one statement": { ms } };
  };
  const ours = async () => {
    const run = await runPipeline(world, pipeline);
    requireRun(run, { rows_read: changed, rows_written: changed });
    return { changes: { ms: run.ms, note: `${run.data_path}, ${run.batches} batches, write ${run.write_ms} ms` } };
  };
  const [first, second] = round % 2 === 0 ? [byHand, ours] : [ours, byHand];
  return { ...(await first()), ...(await second()) };
}

export default {
  name: "changes",
  async setUp(world) {
    await singleStatement(world.admin, TARGET);
    pipeline = await createPipeline(world, { ...INCREMENTAL, batch_size: 5000 });
    await runPipeline(world, pipeline);
    await world.admin.query(`VACUUM (ANALYZE) ${TARGET}, ${pipeline.target_table}`);
  },
  async tearDown(world) {
    await dropPipeline(world, pipeline);
    await world.admin.query(`DROP TABLE ${TARGET}`);
  },
  /** Both sides need the same changes, so they are measured together. */
  steps: [{ gives: ["changes by one statement", "changes"], measure }],
  ratios: [
    {
      name: "changes",
      title: "Incremental load after 1 % of the rows changed ÷ one statement that moves just those",
      ours: "changes",
      reference: "changes by one statement",
      target: 1.5,
    },
  ],
};
