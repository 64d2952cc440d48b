// Source in another database than the target: rows pass through the runner, as bytes or as values for code tasks.
import { copyLoop } from "../support/references.mjs";
import { QUERY } from "../support/source-data.mjs";
import { firstLoad, INCREMENTAL, timed } from "./loads.mjs";

const TARGET = "analytics.by_hand";
const BATCH_SIZE = 5000;

async function byCopyLoop(world) {
  const ms = await timed(world, () => copyLoop(world.elsewhere, world.admin, TARGET, BATCH_SIZE));
  await world.admin.query(`DROP TABLE ${TARGET}`);
  return { "bare COPY loop": { ms } };
}

const byRunner = (name, dataPath, tasks) => async (world) => {
  const config = { ...INCREMENTAL, source_connection: "elsewhere", batch_size: BATCH_SIZE, tasks };
  const expected = { data_path: dataPath, rows_written: world.rows };
  const { ms, read_ms, transform_ms, write_ms } = await firstLoad(world, config, expected, world.elsewhere);
  return { [name]: { ms, note: `read ${read_ms} ms, transform ${transform_ms} ms, write ${write_ms} ms` } };
};

const withTask = (language, name) => [
  { order_index: 1, task_type: "SQL", body: QUERY },
  { order_index: 2, task_type: language, body: name },
];

export default {
  name: "two databases",
  steps: [
    { gives: ["bare COPY loop"], measure: byCopyLoop },
    { gives: ["stream"], measure: byRunner("stream", "stream", []) },
    {
      gives: ["TypeScript task"],
      measure: byRunner("TypeScript task", "rows", withTask("TYPESCRIPT", "copy_row_ts")),
    },
    {
      gives: ["Python task"],
      measure: byRunner("Python task", "rows", withTask("PYTHON", "copy_row_py")),
      // Not every machine has Python.
      optional: true,
    },
  ],
  ratios: [
    {
      name: "two-databases",
      title: "Two databases, no code task, batches of 5,000 ÷ a bare `COPY binary → COPY → merge` loop",
      ours: "stream",
      reference: "bare COPY loop",
      target: 1.2,
    },
    {
      name: "typescript-task",
      title: "The same with a TypeScript task that copies each row ÷ that loop",
      ours: "TypeScript task",
      reference: "bare COPY loop",
      target: 1.6,
    },
    {
      name: "python-task",
      title: "The same with a Python task ÷ with the TypeScript one",
      ours: "Python task",
      reference: "TypeScript task",
      target: 2,
    },
  ],
};
