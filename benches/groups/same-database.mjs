// Source and target in one database: rows never leave the server.

import { singleStatement } from "../support/references.mjs";
import { createPipeline, dropPipeline, runPipeline } from "../support/runner.mjs";
import { QUERY } from "../support/source-data.mjs";
import { walOfTable } from "../support/wal.mjs";
import { firstLoad, INCREMENTAL, requireRun, requireSameRows, timed } from "./loads.mjs";

const TARGET = "analytics.by_hand";

const inBatches = (batchSize) => async (world) => {
  const expected = { data_path: "push-down", rows_written: world.rows };
  const { ms } = await firstLoad(world, { ...INCREMENTAL, batch_size: batchSize }, expected);
  return { [`batches of ${batchSize}`]: { ms } };
};

async function byOneStatement(world) {
  const ms = await timed(world, () => singleStatement(world.admin, TARGET));
  await world.admin.query(`DROP TABLE ${TARGET}`);
  return { "one statement": { ms } };
}

async function fullLoadTwice(world) {
  const pipeline = await createPipeline(world, { source_query: QUERY, batch_size: 5000 });
  try {
    const first = await runPipeline(world, pipeline);
    requireRun(first, { data_path: "push-down", strategy: "new table", rows_written: world.rows });
    await requireSameRows(world, pipeline, world.admin);
    const {
      result: second,
      wal,
      walOfTarget,
    } = await walOfTable(world, pipeline.target_table, () => runPipeline(world, pipeline));
    requireRun(second, { rows_written: 0, rows_unchanged: world.rows });
    const perRow = (wal / world.rows).toFixed(1);
    const note = `WAL of the target ${walOfTarget} bytes; of everything else (checkpoint, run) ${perRow} bytes per row`;
    return { "full load": { ms: first.ms }, "second full load": { ms: second.ms, note } };
  } finally {
    await dropPipeline(world, pipeline);
  }
}

export default {
  name: "same database",
  steps: [
    { gives: ["one statement"], measure: byOneStatement },
    { gives: ["batches of 5000"], measure: inBatches(5000) },
    { gives: ["batches of 1000"], measure: inBatches(1000) },
    { gives: ["full load", "second full load"], measure: fullLoadTwice },
  ],
  ratios: [
    {
      name: "batches-5k",
      title: "Incremental first load, batches of 5,000 ÷ one `INSERT … SELECT … ON CONFLICT`",
      ours: "batches of 5000",
      reference: "one statement",
      target: 1.25,
    },
    {
      name: "batches-1k",
      title: "The same with batches of 1,000",
      ours: "batches of 1000",
      reference: "one statement",
      target: 1.4,
    },
    {
      name: "full-load",
      title: "Full load of a missing target, visible at its end ÷ the same statement",
      ours: "full load",
      reference: "one statement",
      target: 0.8,
    },
    {
      name: "unchanged",
      title: "Second full load with nothing changed ÷ the first",
      ours: "second full load",
      reference: "full load",
      target: 0.6,
    },
  ],
};
