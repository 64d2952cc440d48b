import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Reconcile } from "../../src/domain/reconcile.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { holdBatch } from "../support/batches.ts";
import { holdLock } from "../support/hold-lock.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/** A person, or a limit of the server, ends one session of a load, while all others go on. */

let bench: Bench;

beforeEach(async () => {
  bench = await openBench({ RETRY_BACKOFF_SECONDS: "0", RETRY_LONGEST_PAUSE_SECONDS: "1" });
  await bench.query(`CREATE TABLE content.film (id int PRIMARY KEY, title text);
    INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 1000) n;
    ANALYZE content.film`);
  await bench.startRunner();
});
afterEach(() => bench.close());

const create = (more: object = {}): Promise<Pipeline> =>
  bench.create({
    source_query: "SELECT id, title FROM content.film",
    target_key: ["id"],
    batch_size: 100,
    ...more,
  });

/** Begins a load that stands still while its third batch commits; the returned function lets it go on. */
async function loadToThirdBatch(pipeline: Pipeline): Promise<() => Promise<void>> {
  const letGo = await holdBatch(bench, pipeline, 3);
  await bench.store.requests.run(pipeline.id, "api");
  await oneSession("the third batch commits", "state = 'active' AND wait_event = 'PgSleep'");
  return letGo;
}

/** The process of the one session of a load for which the condition holds. */
async function oneSession(what: string, condition: string): Promise<number> {
  return until(what, async () => {
    const sessions = await bench.query(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
          AND usename IN ('vitrina_reader', 'vitrina_writer', 'vitrina_loader') AND ${condition}`,
    );
    return sessions.length === 1 ? Number(sessions[0]?.["pid"]) : undefined;
  });
}

async function end(pid: number): Promise<void> {
  expect(await bench.query("SELECT pg_terminate_backend($1) AS ended", [pid])).toEqual([{ ended: true }]);
  await until("it is gone", async () => {
    return (await bench.query("SELECT FROM pg_stat_activity WHERE pid = $1", [pid])).length === 0;
  });
}

const endHolder = async (): Promise<void> =>
  end(await oneSession("the snapshot is held", "state = 'idle in transaction' AND query ~ 'pg_export_snapshot'"));

const sessionWithFourthBatch = (): Promise<number> =>
  oneSession("the fourth batch is read", "state = 'idle' AND query = 'COMMIT' AND usename = 'vitrina_loader'");

const WHILE_IDLE = /^Could not .*: the session was ended between two statements, by the server or by a person/;

/** The attempts in order; the last one has ended the load. */
async function attemptsOf(pipeline: Pipeline) {
  await bench.ended(pipeline);
  expect(await bench.store.pipelines.get(pipeline.id)).toMatchObject({ status: "IDLE", waiting: null });
  return (await askedRuns(bench.store, pipeline.id)).reverse();
}

/** Comparisons stand still after their first batch until the returned function is called. */
async function holdComparisons(): Promise<() => Promise<void>> {
  const letGo = await holdLock(bench.database.url, "SELECT pg_advisory_lock(8)");
  await bench.query(`
    CREATE FUNCTION public.on_compared() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(8) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END $$;
    CREATE TRIGGER on_compared AFTER UPDATE OF rows_read ON etl.etl_runs FOR EACH ROW
      WHEN (NEW.kind = 'reconcile' AND NEW.rows_read > 0) EXECUTE FUNCTION public.on_compared()`);
  return letGo;
}

async function compare({ id }: Pipeline): Promise<() => Promise<Reconcile>> {
  const { reconciles } = bench.store;
  const asked = await reconciles.request(id, "test");
  return () =>
    until("the comparison ends", async () => {
      const reconcile = await reconciles.get(id, asked.id);
      return reconcile.finished_at !== null && reconcile;
    });
}

describe("R4.6 a session that was ended", () => {
  it("held the snapshot of a push-down load: the next attempt takes another", async () => {
    const pipeline = await create();
    const letGo = await loadToThirdBatch(pipeline);
    await endHolder();
    await letGo();
    expect(await attemptsOf(pipeline)).toMatchObject([
      {
        status: "FAILED",
        data_path: "push-down",
        error_code: "DATABASE_BUSY",
        error: expect.stringMatching(/^Could not read the source: the session that held its snapshot was ended/),
      },
      { attempt: 2, status: "SUCCESS", resumed: true, rows_rejected: 0 },
    ]);
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
  });

  it("held the snapshot in which a load continues by stream after a refused row", async () => {
    const pipeline = await create({ create_target: false });
    await bench.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY CHECK (id <> 350), title text);
      GRANT ALL ON ${pipeline.target_table} TO vitrina_writer`);
    const letGo = await loadToThirdBatch(pipeline);
    await sessionWithFourthBatch();
    await endHolder();
    await letGo();
    expect(await attemptsOf(pipeline)).toMatchObject([
      { status: "FAILED", error_code: "DATABASE_BUSY", error: expect.stringMatching(/held its snapshot was ended/) },
      { attempt: 2, status: "SUCCESS", rows_rejected: 1 },
    ]);
    const good = "(SELECT * FROM content.film WHERE id <> 350)";
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(good));
    const readers = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND usename = 'vitrina_reader'";
    await until("no session is left", async () => (await bench.query(readers)).length === 0);
  });

  it("read the source by stream: the next attempt continues", async () => {
    // Without an index on the key, and with more bytes than all buffers on the way take.
    await bench.query("CREATE TABLE content.wide AS SELECT id, repeat(title, 4000) AS title FROM content.film");
    const pipeline = await create({ source_query: "SELECT id, title FROM content.wide" });
    const letGo = await loadToThirdBatch(pipeline);
    await end(await oneSession("the rest cannot be sent yet", "wait_event = 'ClientWrite' AND query ~ '^COPY'"));
    await letGo();
    expect(await attemptsOf(pipeline)).toMatchObject([
      { status: "FAILED", data_path: "stream", error_code: "DATABASE_UNAVAILABLE" },
      { attempt: 2, status: "SUCCESS", rows_rejected: 0 },
    ]);
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.wide"));
  });

  it("had read the next batch of a push-down load: the next attempt reads it again", async () => {
    const pipeline = await create();
    const letGo = await loadToThirdBatch(pipeline);
    await end(await sessionWithFourthBatch());
    await letGo();
    expect(await attemptsOf(pipeline)).toMatchObject([
      { status: "FAILED", error_code: "DATABASE_UNAVAILABLE", error: expect.stringMatching(WHILE_IDLE) },
      { attempt: 2, status: "SUCCESS" },
    ]);
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
  });

  it("held the snapshot of a target that is compared: the answer says so, and may be asked for again", async () => {
    const pipeline = await create();
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    const letGo = await holdComparisons();
    const ended = await compare(pipeline);
    await end(
      await oneSession("it waits for the next batch", "state = 'idle in transaction' AND query ~ 'FROM STDIN'"),
    );
    await letGo();
    expect(await ended()).toMatchObject({
      status: "INCONCLUSIVE",
      error_code: "DATABASE_UNAVAILABLE",
      error: expect.stringMatching(WHILE_IDLE),
    });
    expect(await (await compare(pipeline))()).toMatchObject({ status: "MATCH" });
  });
});
