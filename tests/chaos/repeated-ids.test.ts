import { afterEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Chaos, DATA_PATH, diedAt, LABEL_TASK, openChaos, type Path } from "../support/chaos.ts";
import { until } from "../support/until.ts";

/**
 * An incremental_id_key that does not tell rows apart: twenty rows and more have the same stamp and id, some have no id
 * at all, and batches are smaller than that. Wherever a load is paused or killed, no row may be passed over.
 */

const ROWS = 160;
const BATCH = 9;

let chaos: Chaos;
afterEach(() => chaos?.close());

interface Shape {
  readonly name: string;
  readonly path: Path;
  readonly query: string;
  readonly key: string;
  readonly task?: string;
  readonly idKey?: string | null;
  /** Where rows at the position are read again, two batches must be more than they are: so often it pauses. */
  readonly batch?: number;
}

const PLAIN = "SELECT part, id, title, modified FROM content.part";
/** Nobody can prove that a join does not repeat rows. */
const JOINED =
  "SELECT p.part, p.id, p.title || k.name AS title, p.modified FROM content.part p JOIN content.kind k ON k.id = p.part % 3";

const SHAPES: readonly Shape[] = [
  { name: "inside one database", path: "push-down", query: PLAIN, key: "part" },
  { name: "inside one database, without an id", path: "push-down", query: PLAIN, key: "part", idKey: null },
  { name: "as bytes, over a join", path: "stream", query: JOINED, key: "part" },
  { name: "into another database", path: "elsewhere", query: PLAIN, key: "part" },
  { name: "through a task that makes the key", path: "rows", query: JOINED, key: "label", task: LABEL_TASK, batch: 25 },
];

describe.each(SHAPES)("rows that their cursor does not tell apart, $name", (shape) => {
  it("are all there after kills and pauses, and so are those that come later", async () => {
    chaos = await openChaos(shape.path);
    await createSource();
    const pipeline = await createPipeline(shape);
    await chaos.store.requests.run(pipeline.id, "api");
    for (const point of ["batch_committed:1", "checkpoint_recorded:2"]) {
      await diedAt(chaos, chaos.runner(`${point}:kill`), point);
      await chaos.query("UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp() WHERE status = 'RUNNING'");
    }
    await pauseAfterEveryBatch(true);
    chaos.runner();
    const pauses = await untilRead(pipeline);
    expect(pauses).toBeGreaterThan(1);
    await requireSame(shape, pipeline);

    // A tie of the last row, and rows behind it.
    await chaos.query(`INSERT INTO content.part (id, title, modified)
      SELECT id, 'later', modified FROM content.part WHERE id IS NOT NULL ORDER BY modified DESC, id DESC LIMIT 1;
      INSERT INTO content.part (id, title, modified)
      SELECT 1, 'behind', clock_timestamp() FROM generate_series(1, ${3 * BATCH})`);
    await untilRead(pipeline);
    await pauseAfterEveryBatch(false);
    expect(await run(pipeline)).toMatchObject({ status: "SUCCESS", data_path: DATA_PATH[shape.path] });
    await requireSame(shape, pipeline);
  });
});

/** Push-down does not read rows without an id, so there are none where it is wanted. */
async function createSource(): Promise<void> {
  await chaos.query(`
    CREATE TABLE content.kind AS SELECT n AS id, 'kind ' || n AS name FROM generate_series(0, 2) n;
    CREATE TABLE content.part (part bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id int, title text, modified timestamptz NOT NULL);
    INSERT INTO content.part (id, title, modified)
    SELECT n % 3, 'part ' || n, '2024-01-01'::timestamptz + n / 75 * interval '1 second' FROM generate_series(1, ${ROWS}) n;
    CREATE INDEX ON content.part (modified, id);
    ANALYZE content.part`);
}

async function createPipeline({ path, query, key, task, idKey = "id", batch = BATCH }: Shape): Promise<Pipeline> {
  if (path === "stream" || path === "rows") {
    await chaos.query("UPDATE content.part SET id = NULL WHERE part % 5 = 0");
  }
  const tasks = [
    { order_index: 1, task_type: "SQL", body: query },
    { order_index: 2, task_type: "TYPESCRIPT", body: task },
  ];
  return chaos.create({
    name: "parts",
    ...(task === undefined ? { source_query: query } : { tasks }),
    target_table: "analytics.parts",
    target_key: [key],
    create_target: true,
    mode: "incremental",
    incremental_key: "modified",
    incremental_id_key: idKey,
    batch_size: batch,
  });
}

/** Requested inside the commit of a batch, a pause is met at the latest when the next one commits. */
async function pauseAfterEveryBatch(isOn: boolean): Promise<void> {
  await chaos.query(
    isOn
      ? `CREATE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
           UPDATE etl.etl_pipelines SET status = 'PAUSE_REQUESTED' WHERE id = NEW.pipeline_id AND status = 'RUNNING';
           RETURN NULL;
         END $$;
         CREATE TRIGGER pause AFTER UPDATE OF batch_no ON etl.etl_state FOR EACH ROW EXECUTE FUNCTION public.pause()`
      : "DROP TRIGGER pause ON etl.etl_state",
  );
}

/** Runs again after every pause, until a load comes to its end; returns how often it paused. */
async function untilRead(pipeline: Pipeline): Promise<number> {
  for (let pauses = 0; ; pauses += 1) {
    await run(pipeline);
    if ((await chaos.store.state.get(pipeline.id)).scanPosition === null) return pauses;
    expect(pauses).toBeLessThan(80);
  }
}

async function run({ id }: Pipeline) {
  await chaos.store.requests.run(id, "api");
  await until("the run has ended", async () =>
    ["IDLE", "FAILED", "PAUSED"].includes((await chaos.store.pipelines.get(id)).status),
  );
  return (await chaos.store.runs.list(id, { limit: 1 })).items[0];
}

async function requireSame({ query }: Shape, { target_table }: Pipeline): Promise<void> {
  const wanted = await chaos.query(`SELECT part::text, id, title FROM (${query}) q ORDER BY q.part`);
  const found = await chaos.target.query(`SELECT part::text, id, title FROM ${target_table} t ORDER BY t.part`);
  expect(found.length).toBe(wanted.length);
  expect(found).toEqual(wanted);
}
