import { describe, expect, it } from "vitest";
import { loadTables as loadTablesOf } from "../../src/connectors/postgres/loads/load-table.ts";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { askedRuns } from "../support/asked-runs.ts";
import {
  type Chaos,
  DATA_PATH,
  faulted,
  faultLine,
  LEASE_MS,
  openChaos,
  type Path,
  printed,
  SHORT_LEASE,
} from "../support/chaos.ts";
import {
  createPipeline,
  createSource,
  differences,
  INCREMENTAL,
  type Kind,
  loadTables,
  NEW_TARGET,
  OLD_TARGET,
  ROWS,
  TEXT_KEY,
} from "../support/chaos-kinds.ts";
import { holdLock } from "../support/hold-lock.ts";
import { LONG } from "../support/long.ts";
import { until } from "../support/until.ts";
import type { VitrinaProcess } from "../support/vitrina-process.ts";

/** So that neither its heartbeat nor a timeout tells a runner before it has tried; it is ended by hand. */
const LONG_LEASE = { LEASE_SECONDS: "600" };

interface Case {
  readonly kind: Kind;
  readonly path: Path;
  readonly frozen: string;
  /** The point it must pass when it is awake: it tried. */
  readonly tried?: string;
  /** The point it must not pass: it was refused. */
  readonly refused?: string;
  /** One that stands for the others in npm test. */
  readonly typical?: true;
}

const chosen = (cases: readonly Case[]): readonly Case[] => cases.filter(({ typical }) => LONG || typical);

/**
 * A runner is frozen (SIGSTOP) until its lease is over and another one holds the pipeline, then woken (SIGCONT). What
 * it does then must leave no trace.
 */
describe.concurrent("a runner that wakes up after its lease", () => {
  const beforeBatch = { tried: "batch_applied:4", refused: "checkpoint_recorded:4" };
  const beforeEnd = { frozen: "load_read:1", tried: "load_applied:1", refused: "load_committed:1" };
  const cases: Case[] = [
    { kind: OLD_TARGET, path: "stream", frozen: "batch_committed:3", ...beforeBatch },
    { kind: OLD_TARGET, path: "push-down", ...beforeEnd, typical: true },
    { kind: OLD_TARGET, path: "elsewhere", ...beforeEnd },
    { kind: NEW_TARGET, path: "stream", frozen: "batch_read:4", ...beforeBatch },
    // Its session that reads ahead may be ended by the server meanwhile, so how far it gets is open.
    { kind: INCREMENTAL, path: "push-down", frozen: "batch_committed:3", refused: "checkpoint_recorded:4" },
    { kind: INCREMENTAL, path: "rows", frozen: "batch_transformed:4", ...beforeBatch },
    { kind: INCREMENTAL, path: "elsewhere", frozen: "batch_committed:3", ...beforeBatch, typical: true },
    { kind: INCREMENTAL, path: "stream", frozen: "load_read:1", refused: "watermark_moved:1" },
  ];
  it.for(chosen(cases))(
    "R4.7 is refused by the fence: $kind.name by $path, frozen at $frozen",
    async (given, context) => {
      const chaos = await openChaos(given.path);
      context.onTestFinished(() => chaos.close());
      const { zombie, owner, pipeline, trace } = await takeOver(chaos, given, LONG_LEASE);

      zombie.signal("SIGCONT");
      await printed(zombie, /run dropped/);
      if (given.tried !== undefined) expect(zombie.output()).toMatch(faultLine(given.tried, "delay"));
      if (given.refused !== undefined) expect(zombie.output()).not.toMatch(faultLine(given.refused, "delay"));
      expect(await readTrace(chaos, pipeline)).toEqual(trace);
      await requireGoodEnd(chaos, pipeline, owner);
    },
  );

  const holding: Case[] = [
    { kind: OLD_TARGET, path: "push-down", frozen: "batch_applied:4" },
    { kind: INCREMENTAL, path: "stream", frozen: "checkpoint_recorded:4", typical: true },
    { kind: INCREMENTAL, path: "elsewhere", frozen: "checkpoint_recorded:4" },
    { kind: TEXT_KEY, path: "stream", frozen: "load_applied:1" },
    { kind: NEW_TARGET, path: "push-down", frozen: "transaction_begun:1" },
  ];
  it.for(chosen(holding))(
    "R4.7 cannot hold the pipeline by its open transaction: $kind.name by $path, frozen at $frozen",
    async (given, context) => {
      const chaos = await openChaos(given.path);
      context.onTestFinished(() => chaos.close());
      // Returns only when the server has ended the session of the frozen runner, and with it its locks.
      const { zombie, owner, pipeline, trace } = await takeOver(chaos, given);

      zombie.signal("SIGCONT");
      await printed(zombie, /run dropped/);
      expect(await readTrace(chaos, pipeline)).toEqual(trace);
      await requireGoodEnd(chaos, pipeline, owner);
    },
  );
});

it("R4.7 a frozen runner's statement may outlast its lease: what it wrote is refused behind it", async ({
  onTestFinished,
}) => {
  const chaos = await openChaos("push-down");
  onTestFinished(() => chaos.close());
  await createSource(chaos);
  const pipeline = await createPipeline(chaos, INCREMENTAL, "push-down", "mart");
  await chaos.query(`CREATE TABLE ${pipeline.target_table} AS SELECT id, code, title, modified FROM content.film LIMIT 0;
    ALTER TABLE ${pipeline.target_table} ADD PRIMARY KEY (id);
    GRANT ALL ON ${pipeline.target_table} TO vitrina_writer;
    CREATE FUNCTION analytics.held_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      WHILE NOT pg_try_advisory_xact_lock_shared(42) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NULL; END $$;
    CREATE TRIGGER held_up AFTER INSERT ON ${pipeline.target_table} EXECUTE FUNCTION analytics.held_up()`);
  const letGo = await holdLock(chaos.database.url, "SELECT pg_advisory_lock(42)");
  onTestFinished(letGo);
  await chaos.store.requests.run(pipeline.id, "api");
  const zombie = chaos.runner(undefined, LONG_LEASE);
  const sleeps = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
  const untilUnderWay = () => until("its statement is under way", async () => (await chaos.query(sleeps)).length > 0);
  await untilUnderWay();
  zombie.signal("SIGSTOP");
  await endLeases(chaos);
  const owner = chaos.runner("claimed:1:park");
  await faulted(owner, "claimed", "park");
  await untilUnderWay();
  await letGo();
  zombie.signal("SIGCONT");
  await printed(zombie, /run dropped/);
  owner.signal("SIGUSR2");
  await chaos.atRest();
  expect(await differences(chaos, pipeline.target_table)).toBe(0);
  const written = (await chaos.store.runs.list(pipeline.id, { limit: 50 })).items;
  expect(written.reduce((sum, { rows_written }) => sum + rows_written, 0)).toBe(ROWS);
});

describe.concurrent("a runner whose event loop is blocked", () => {
  it("R4.7 keeps its lease by its heartbeat thread, for twice as long as the lease", async ({ onTestFinished }) => {
    const chaos = await openChaos("stream");
    onTestFinished(() => chaos.close());
    await createSource(chaos);
    const pipeline = await createPipeline(chaos, NEW_TARGET, "stream", "mart");
    await chaos.store.requests.run(pipeline.id, "api");
    const blocked = chaos.runner(`batch_read:4:block:${2 * LEASE_MS}`, SHORT_LEASE);
    await faulted(blocked, "batch_read", "block");
    const other = chaos.runner();
    await printed(other, /runner started/);
    await chaos.atRest();
    const runs = await askedRuns(chaos.store, pipeline.id);
    expect(runs.map(({ status, rows_written }) => ({ status, rows_written }))).toEqual([
      { status: "SUCCESS", rows_written: ROWS },
    ]);
    expect(await differences(chaos, pipeline.target_table)).toBe(0);
  });
});

async function endLeases({ query }: Chaos): Promise<void> {
  await query("UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp() WHERE status = 'RUNNING'");
}

/** Freezes one runner at the point, and has another one hold the pipeline before its first batch. */
async function takeOver(
  chaos: Chaos,
  { kind, path, frozen, tried, refused }: Case,
  lease: Record<string, string> = {},
) {
  await createSource(chaos);
  const pipeline = await createPipeline(chaos, kind, path, "mart");
  await chaos.store.requests.run(pipeline.id, "api");
  const marks = [tried, refused].filter((mark) => mark !== undefined).map((mark) => `${mark}:delay:0`);
  const zombie = chaos.runner([`${frozen}:stop`, ...marks].join(","), lease);
  await faulted(zombie, frozen, "stop");
  if (lease === LONG_LEASE) await endLeases(chaos);
  const owner = chaos.runner("prepared:1:park");
  await faulted(owner, "prepared", "park");
  const [lost] = (await askedRuns(chaos.store, pipeline.id)).slice(1);
  expect(lost).toMatchObject({ status: "FAILED", error_code: "RUNNER_LOST", data_path: DATA_PATH[path] });
  return { zombie, owner, pipeline, trace: await readTrace(chaos, pipeline) };
}

/** Everything a runner could leave behind: rows, checkpoints, runs; with the transaction that wrote them. */
async function readTrace({ query, target }: Chaos, { id }: Pipeline): Promise<unknown> {
  const tables = loadTablesOf({ schema: "analytics", table: "mart" }, id).map(({ table }) => `analytics.${table}`);
  return {
    rows: await target.query("SELECT t, content.state_of(t) AS state FROM unnest($1::text[]) t", [
      ["analytics.mart", "analytics._vitrina_checkpoint", ...tables],
    ]),
    checkpoint: await query("SELECT s.xmin, s::text FROM etl.etl_state s WHERE s.pipeline_id = $1", [id]),
    // The lease of the run that goes on is renewed meanwhile.
    runs: await query(
      `SELECT CASE WHEN r.status <> 'RUNNING' THEN r.xmin END AS xmin, to_jsonb(r) - 'lease_expires_at' AS run
         FROM etl.etl_runs r WHERE r.pipeline_id = $1 ORDER BY r.id`,
      [id],
    ),
  };
}

async function requireGoodEnd(chaos: Chaos, { id, target_table }: Pipeline, owner: VitrinaProcess): Promise<void> {
  owner.signal("SIGUSR2");
  await chaos.atRest();
  const runs = await askedRuns(chaos.store, id);
  expect(runs.map(({ status }) => status)).toEqual(["SUCCESS", "FAILED"]);
  expect(await differences(chaos, target_table)).toBe(0);
  expect(await loadTables(chaos)).toEqual([]);
}
