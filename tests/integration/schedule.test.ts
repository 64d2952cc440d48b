import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { holdLock } from "../support/hold-lock.ts";
import { type RecordingLog, recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

let database: TestDatabase;
let store: MetaStore;
let log: RecordingLog;
let stopRunner: () => Promise<void> = async () => undefined;
let processes: VitrinaProcess[] = [];

beforeEach(async () => {
  // Nobody looks by himself for an hour: what happens sooner happens because it is due.
  database = await createTestDatabase(inject("postgresUrl"), { settings: { RUNNER_POLL_SECONDS: "3600" } });
  await database.query(`CREATE SCHEMA content; CREATE TABLE content.film AS SELECT 1 AS id, 'a' AS title;
    GRANT USAGE ON SCHEMA content TO vitrina_reader; GRANT SELECT ON content.film TO vitrina_reader`);
  // Every due time that was passed, and whether it fired.
  await database.query(`CREATE TABLE public.ticks (pipeline_id uuid, due timestamptz, fired boolean);
    CREATE FUNCTION public.note_tick() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      INSERT INTO public.ticks VALUES (NEW.id, OLD.next_run_at, OLD.status = 'IDLE' AND NEW.status = 'RUN_REQUESTED');
      RETURN NULL;
    END $$;
    CREATE TRIGGER note_tick AFTER UPDATE OF next_run_at ON etl.etl_pipelines FOR EACH ROW
      WHEN (OLD.next_run_at IS NOT NULL) EXECUTE FUNCTION public.note_tick()`);
  store = database.openStore();
  log = recordingLog();
});
afterEach(async () => {
  await stopRunner();
  stopRunner = async () => undefined;
  await Promise.all(processes.map((one) => one.stop()));
  processes = [];
  await database.drop();
});

async function start(): Promise<void> {
  const runner = await startRunner(database.settings, database.urls, log);
  stopRunner = () => runner.stop();
}

async function create(more: object = {}): Promise<Pipeline> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  return store.pipelines.create(
    newPipelineSchema.parse({
      name,
      source_query: "SELECT id, title FROM content.film",
      target_table: `analytics.${name}`,
      target_key: ["id"],
      create_target: true,
      ...more,
    }),
    "test",
  );
}

async function runsOf({ id }: Pipeline): Promise<{ status: string; trigger: string }[]> {
  return (await store.runs.list(id, { limit: 100 })).items;
}

const plannedAt = (pipeline: Pipeline): Promise<Date> =>
  until("it is planned", async () => (await store.pipelines.get(pipeline.id)).next_run_at ?? undefined);

async function untilRan(pipeline: Pipeline, times: number): Promise<void> {
  await until(`it ran ${times} times`, async () => {
    const runs = await runsOf(pipeline);
    return runs.length >= times && runs.every(({ status }) => status === "SUCCESS");
  });
}

/** After this nothing of the pipeline happens any more, so that what happened can be counted. */
async function switchOff(pipelines: readonly Pipeline[]): Promise<void> {
  for (const { id } of pipelines) await store.pipelines.update(id, { schedule_interval: null }, { author: "test" });
  await until("every run ended", async () => {
    const statuses = await Promise.all(pipelines.map(async ({ id }) => (await store.pipelines.get(id)).status));
    return statuses.every((status) => status === "IDLE");
  });
}

const overlaps = (): Promise<unknown[]> =>
  database.query(
    `SELECT a.id FROM etl.etl_runs a JOIN etl.etl_runs b ON a.pipeline_id = b.pipeline_id AND a.id < b.id
      WHERE tstzrange(a.started_at, a.finished_at) && tstzrange(b.started_at, b.finished_at)`,
  );

describe("R4.8 a schedule", () => {
  it("fires each due time once, with two runner processes that both look", async () => {
    processes = [1, 2].map(() =>
      spawnVitrina(["runner"], { env: { ...roleEnvironment(database.urls), RUNNER_POLL_SECONDS: "3600" } }),
    );
    await Promise.all(processes.map((one) => one.untilPrinted("runner started")));
    const pipelines = [
      await create({ schedule_interval: "1s" }),
      await create({ schedule_interval: "PT1S" }),
      await create({ schedule_interval: "1s" }),
    ];
    for (const pipeline of pipelines) await untilRan(pipeline, 5);
    await switchOff(pipelines);

    const [ticks] = await database.query(
      `SELECT count(*)::int AS passed, count(DISTINCT (pipeline_id, due))::int AS due_times,
              count(*) FILTER (WHERE fired)::int AS fired FROM public.ticks WHERE due <= clock_timestamp()`,
    );
    const runs = await database.query(
      "SELECT count(*)::int AS count, trigger, status, attempt FROM etl.etl_runs GROUP BY trigger, status, attempt",
    );
    expect(runs).toEqual([{ count: ticks?.["fired"], trigger: "schedule", status: "SUCCESS", attempt: 1 }]);
    expect(ticks?.["passed"]).toBe(ticks?.["due_times"]);
    expect(await overlaps()).toEqual([]);
  });

  it("does not pile up while a run is under way", async () => {
    await start();
    const pipeline = await create({ schedule_interval: "1s" });
    await untilRan(pipeline, 1);
    await database.query("UPDATE content.film SET title = 'b'");
    const unlock = await holdLock(database.url, `LOCK TABLE ${pipeline.target_table} IN EXCLUSIVE MODE`);
    await until("due times pass during a run", async () => {
      const [passed] = await database.query("SELECT count(*)::int AS n FROM public.ticks WHERE NOT fired");
      return (passed?.["n"] as number) >= 2;
    });
    await unlock();
    await untilRan(pipeline, 3);
    await switchOff([pipeline]);
    const [fired] = await database.query("SELECT count(*)::int AS n FROM public.ticks WHERE fired");
    expect(await runsOf(pipeline)).toHaveLength(fired?.["n"] as number);
    expect(await overlaps()).toEqual([]);
  });

  it("runs once for all the ticks it missed, and keeps its beat", async () => {
    const pipeline = await create({ schedule_interval: "1h" });
    await database.query("UPDATE etl.etl_pipelines SET next_run_at = clock_timestamp() - interval '5.5 hours'");
    const missed = await plannedAt(pipeline);
    await start();
    await untilRan(pipeline, 1);
    const next = await plannedAt(pipeline);
    expect(next.getTime() - missed.getTime()).toBe(6 * 3_600_000);
    expect(await runsOf(pipeline)).toMatchObject([{ trigger: "schedule" }]);
  });

  it("counts cron in its time zone", async () => {
    await start();
    const pipeline = await create({ schedule_interval: "30 3 * * * Asia/Tokyo" });
    const next = await plannedAt(pipeline);
    const answer = await database.query(
      `SELECT to_char($1::timestamptz AT TIME ZONE 'Asia/Tokyo', 'HH24:MI:SS.MS') AS in_tokyo,
              $1 > clock_timestamp() AND $1 <= clock_timestamp() + interval '24 hours' AS is_the_next`,
      [next],
    );
    expect(answer).toEqual([{ in_tokyo: "03:30:00.000", is_the_next: true }]);
    await store.pipelines.update(pipeline.id, { schedule_interval: "30 3 * * *" }, { author: "test" });
    expect((await plannedAt(pipeline)).toISOString()).toMatch(/T03:30:00\.000Z$/);
  });

  it("fires nothing that is disabled, paused or failed", async () => {
    const disabled = await create({ schedule_interval: "1s", enabled: false });
    const paused = await create({ schedule_interval: "1s" });
    const failed = await create({ schedule_interval: "1s" });
    const firing = await create({ schedule_interval: "1s" });
    await database.query("UPDATE etl.etl_pipelines SET status = 'PAUSED' WHERE id = $1", [paused.id]);
    await database.query("UPDATE etl.etl_pipelines SET status = 'FAILED' WHERE id = $1", [failed.id]);
    await start();
    await untilRan(firing, 3);
    for (const pipeline of [disabled, paused, failed]) expect(await runsOf(pipeline)).toEqual([]);
    expect(await store.pipelines.get(disabled.id)).toMatchObject({ status: "IDLE", next_run_at: null });
    expect(await store.pipelines.get(paused.id)).toMatchObject({ status: "PAUSED", next_run_at: expect.any(Date) });
    expect(await store.pipelines.get(failed.id)).toMatchObject({ status: "FAILED", next_run_at: expect.any(Date) });
  });

  it("one that was made unreadable by hand is told once, and stops no other", async () => {
    const broken = await create({ schedule_interval: "1s" });
    const firing = await create({ schedule_interval: "1s" });
    await database.query("UPDATE etl.etl_pipelines SET schedule_interval = 'every now and then' WHERE id = $1", [
      broken.id,
    ]);
    await start();
    await untilRan(firing, 2);
    expect(log.entries.filter(({ level }) => level === "warn")).toMatchObject([
      {
        message: "schedule ignored until it is corrected",
        fields: { pipeline: broken.name, reason: expect.stringContaining("every now and then") },
      },
    ]);
    expect(await runsOf(broken)).toEqual([]);
    await database.query("UPDATE etl.etl_pipelines SET schedule_interval = '1s' WHERE id = $1", [broken.id]);
    await untilRan(broken, 1);
  });
});
