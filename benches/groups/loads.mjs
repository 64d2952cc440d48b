// Steps that several groups share: one load by a runner, checked to be the load it claims to be.
import { createPipeline, dropPipeline, runPipeline } from "../support/runner.mjs";
import { COLUMNS, QUERY } from "../support/source-data.mjs";

export const INCREMENTAL = {
  source_query: QUERY,
  mode: "incremental",
  incremental_key: "modified",
  incremental_id_key: "id",
};

/** Loads everything into a target of its own and returns the run; the target is dropped afterwards. */
export async function firstLoad(world, config, expected, source = world.admin) {
  const pipeline = await createPipeline(world, config);
  try {
    const run = await runPipeline(world, pipeline);
    requireRun(run, expected);
    await requireSameRows(world, pipeline, source);
    return run;
  } finally {
    await dropPipeline(world, pipeline);
  }
}

export function requireRun(run, expected) {
  for (const [field, value] of Object.entries(expected)) {
    if (run[field] === value) continue;
    throw new Error(`The bench does not measure what it should: ${field} is ${run[field]}, not ${value}.`);
  }
}

const checked = new Set();

/** Once per kind of load: a fast load of wrong rows would be worth nothing. */
export async function requireSameRows({ admin }, { source_query, target_table, batch_size, mode, tasks }, source) {
  const query = tasks[0]?.body ?? source_query;
  const kind = JSON.stringify([query, batch_size, mode, tasks]);
  if (checked.has(kind)) return;
  checked.add(kind);
  const sum = "SELECT count(*) AS rows, sum(hashtextextended(t::text, 0)::numeric) AS sum";
  const [ours] = (await admin.query(`${sum} FROM (SELECT ${COLUMNS.join(", ")} FROM ${target_table}) t`)).rows;
  const [wanted] = (await source.query(`${sum} FROM (${query}) t`)).rows;
  if (ours.rows !== wanted.rows || ours.sum !== wanted.sum) throw new Error(`${target_table} is not what was read.`);
}

/** How long hand-written work takes, starting like a run: right after a checkpoint of the server. */
export async function timed({ admin }, work) {
  await admin.query("CHECKPOINT");
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
