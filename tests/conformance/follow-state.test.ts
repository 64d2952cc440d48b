import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { configFingerprint } from "../../src/domain/checkpoint.ts";
import type { FollowPosition } from "../../src/domain/follow.ts";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/** What a meta-store promises about pipelines that follow, and about sweeps. */

let database: TestDatabase;
let store: MetaStore;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  store = database.openStore();
});
afterAll(() => database.drop());

const position = (snapshot: string): FollowPosition => ({
  snapshot,
  fingerprint: { server: "1", "content.film": "16384" },
  lastChange: { number: "7", xid: "700" },
  forgotten: { "content.film": "700:700:" },
});

function create(more: object = {}): Promise<Pipeline> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  const config = { name, source_query: "SELECT 1 AS id", target_table: `analytics.${name}`, target_key: ["id"] };
  return store.pipelines.create(newPipelineSchema.parse({ ...config, mode: "follow", ...more }), "test");
}

async function claim({ id }: Pipeline): Promise<Claim> {
  await store.requests.run(id, "api");
  const claimed = await store.queue.claimNext(randomUUID(), 60_000);
  if (claimed?.pipeline.id !== id) throw new Error("the pipeline was not claimed");
  return claimed;
}

const move = (snapshot: string, comparedEverything = false, fingerprint = "f") => ({
  position: position(snapshot),
  fingerprint,
  tables: ["content.film"],
  mark: null,
  comparedEverything,
});

/** One that has followed up to a position, and is idle. */
async function following(more: object = {}): Promise<Pipeline> {
  const pipeline = await create(more);
  const claimed = await claim(pipeline);
  await store.batchCommit(claimed).moveFollowPosition(move("10:20:", false, configFingerprint(pipeline)));
  await store.queue.finishRun(claimed, { kind: "succeeded" });
  return pipeline;
}

const isOutdated = async (pipeline: Pipeline): Promise<boolean> =>
  (await store.follow.outdated()).some(({ id }) => id === pipeline.id);

const isWatched = async ({ id }: Pipeline): Promise<boolean> =>
  (await store.follow.watched()).some((pipeline) => pipeline.id === id && pipeline.mayStart);

describe("the position of a pipeline that follows", () => {
  it("is none before its first run, and then exactly what was kept", async () => {
    const pipeline = await create();
    expect(await store.follow.get(pipeline.id)).toMatchObject({ position: null, tables: [], sweepWanted: false });
    const commit = store.batchCommit(await claim(pipeline));
    await commit.noteCompareBegins(position("5:5:"), "It is the first run.", ["content.film"]);
    expect(await store.follow.get(pipeline.id)).toMatchObject({
      position: null,
      comparePosition: position("5:5:"),
      compareReason: "It is the first run.",
    });
    expect(await store.follow.positionsIn({ source_type: "postgres", source_connection: "main" })).toContainEqual({
      pipelineId: pipeline.id,
      position: position("5:5:"),
      tables: ["content.film"],
    });
    await commit.moveFollowPosition(move("5:5:", true));
    await commit.moveFollowPosition(move("10:20:"));
    expect(await store.follow.get(pipeline.id)).toMatchObject({
      position: position("10:20:"),
      fingerprint: "f",
      comparePosition: null,
      compareReason: "It is the first run.",
      tables: ["content.film"],
      lastCompareAt: expect.any(Date),
      lastRoundAt: expect.any(Date),
    });
  });

  it("is forgotten with the state, and when a load starts over", async () => {
    const [reset, startedOver] = [await following(), await following()];
    await store.state.reset(reset.id);
    await store.batchCommit(await claim(startedOver)).startOver();
    for (const { id } of [reset, startedOver])
      expect(await store.follow.get(id)).toMatchObject({ position: null, fingerprint: null, comparePosition: null });
  });

  it("cannot be moved by a runner that lost its lease", async () => {
    const pipeline = await create();
    const claimed = await claim(pipeline);
    await database.query("UPDATE etl.etl_runs SET lease_expires_at = now() - interval '1 second' WHERE id = $1", [
      claimed.runId,
    ]);
    const commit = store.batchCommit(claimed);
    await expect(commit.moveFollowPosition(move("10:20:"))).rejects.toMatchObject({ code: "LEASE_LOST" });
    await expect(commit.noteCompareBegins(position("1:1:"), "why", [])).rejects.toMatchObject({ code: "LEASE_LOST" });
    await expect(commit.noteSwept(1, null)).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await store.follow.get(pipeline.id)).toMatchObject({ position: null, comparePosition: null, repaired: 0 });
  });
});

describe("pipelines that start when their source changes", () => {
  it("are those that follow, are enabled and idle, and have a position", async () => {
    const waiting = await following({ follow: { check_every_seconds: 0.5 } });
    expect((await store.follow.watched()).find(({ id }) => id === waiting.id)).toEqual({
      id: waiting.id,
      name: waiting.name,
      source_type: "postgres",
      source_connection: "main",
      checkEverySeconds: 0.5,
      mayStart: true,
      ifRecorded: false,
      position: position("10:20:"),
      tables: ["content.film"],
    });
    expect(await store.follow.requestOnChange([waiting.id])).toEqual([waiting.id]);
    expect(await store.follow.requestOnChange([waiting.id])).toEqual([]);
    expect(await isWatched(waiting)).toBe(false);
    const claimed = await store.queue.claimNext(randomUUID(), 60_000);
    expect(claimed).toMatchObject({ trigger: "change", kind: "load", pipeline: { id: waiting.id } });
    expect(await isWatched(waiting)).toBe(false);
  });

  it("pause where everything was compared again and again, until a round was enough", async () => {
    const pipeline = await following();
    const compared = async (...moves: boolean[]): Promise<void> => {
      const claimed = await claim(pipeline);
      for (const everything of moves) await store.batchCommit(claimed).moveFollowPosition(move("30:30:", everything));
      await store.queue.finishRun(claimed, { kind: "succeeded" });
    };
    await compared(true);
    expect(await isWatched(pipeline)).toBe(true);
    await compared(true, true);
    expect(await isWatched(pipeline)).toBe(false);
    expect(await store.follow.requestOnChange([pipeline.id])).toEqual([]);
    const { lastCompareAt, restingUntil } = await store.follow.get(pipeline.id);
    expect(Number(restingUntil) - Number(lastCompareAt)).toBe(8000);
    await database.query(
      "UPDATE etl.follow_state SET last_compare_at = now() - interval '10 s' WHERE pipeline_id = $1",
      [pipeline.id],
    );
    expect(await isWatched(pipeline)).toBe(true);
    expect(await store.follow.get(pipeline.id)).toMatchObject({ restingUntil: null });
    await compared(true, true, false);
    expect(await isWatched(pipeline)).toBe(true);
    expect(await store.follow.get(pipeline.id)).toMatchObject({ restingUntil: null });
  });

  it("do not wait until a time comes again that the clock has shown before", async () => {
    const [rested, failed] = [await following(), await following()];
    const claimed = await claim(rested);
    for (const snapshot of ["30:30:", "31:31:"]) {
      await store.batchCommit(claimed).moveFollowPosition(move(snapshot, true));
    }
    await store.queue.finishRun(claimed, { kind: "succeeded" });
    const notRecorded = { kind: "failed", code: "CHANGES_NOT_RECORDED", error: "no", mayPass: false } as const;
    await store.queue.finishRun(await claim(failed), notRecorded);
    for (const one of [rested, failed]) expect(await isWatched(one)).toBe(false);

    // As if the clock were set back by a day.
    await database.query(
      "UPDATE etl.follow_state SET last_compare_at = last_compare_at + interval '1 day' WHERE pipeline_id = $1",
      [rested.id],
    );
    await database.query(
      "UPDATE etl.etl_runs SET started_at = started_at + interval '1 day', finished_at = finished_at + interval '1 day' WHERE pipeline_id = $1",
      [failed.id],
    );
    for (const one of [rested, failed]) expect(await isWatched(one)).toBe(true);
    expect(await store.follow.get(rested.id)).toMatchObject({ restingUntil: null });
    expect(await store.follow.requestOnChange([rested.id, failed.id])).toHaveLength(2);
    for (const { id } of [rested, failed]) await store.requests.cancel(id);
  });

  it("do not pause when somebody has configured them otherwise", async () => {
    const pipeline = await following();
    const claimed = await claim(pipeline);
    for (const snapshot of ["30:30:", "31:31:"]) {
      await store.batchCommit(claimed).moveFollowPosition(move(snapshot, true));
    }
    await store.queue.finishRun(claimed, { kind: "succeeded" });
    expect(await isWatched(pipeline)).toBe(false);
    await store.pipelines.update(pipeline.id, { source_query: "SELECT 3 AS id" }, { author: "test" });
    expect(await isWatched(pipeline)).toBe(true);
    expect(await isOutdated(pipeline)).toBe(true);
    await store.requests.cancel(pipeline.id);
    await store.pipelines.update(pipeline.id, { enabled: false }, { author: "test" });
  });

  it("are never those that a person paused, disabled or must look at", async () => {
    const [paused, disabled, failed, mayPass, fresh] = [
      await following(),
      await following(),
      await following(),
      await following(),
      await create(),
    ];
    const changed = (id: string, columns: string): Promise<unknown> =>
      database.query(`UPDATE etl.etl_pipelines SET ${columns} WHERE id = $1`, [id]);
    await changed(paused.id, "status = 'PAUSED'");
    await changed(disabled.id, "enabled = false");
    await changed(failed.id, "status = 'FAILED'");
    await changed(mayPass.id, "status = 'FAILED', failure_may_pass = true");
    const all = [paused, disabled, failed, mayPass, fresh];
    for (const pipeline of all) expect(await isWatched(pipeline)).toBe(false);
    expect(await store.follow.requestOnChange(all.map(({ id }) => id).filter((id) => id !== fresh.id))).toEqual([]);
    await database.query(
      "UPDATE etl.etl_runs SET started_at = now() - interval '1 hour', finished_at = now() - interval '2 minutes' WHERE pipeline_id = ANY ($1)",
      [[mayPass.id, failed.id]],
    );
    expect(await isWatched(mayPass)).toBe(true);
    expect(await isWatched(failed)).toBe(false);
    expect(await store.follow.requestOnChange([failed.id])).toEqual([]);
    expect(await store.follow.requestOnChange([mayPass.id])).toEqual([mayPass.id]);
    await store.requests.cancel(mayPass.id);
  });
});

describe("pipelines whose source does not record their changes", () => {
  it("start again once it does, but not more often than every minute", async () => {
    const [pipeline, fresh, refused] = [await following(), await create(), await following()];
    const failed = { kind: "failed", code: "CHANGES_NOT_RECORDED", error: "no", mayPass: false } as const;
    for (const one of [pipeline, fresh]) await store.queue.finishRun(await claim(one), failed);
    await store.queue.finishRun(await claim(refused), { ...failed, code: "FOLLOW_REFUSED" });
    const watched = async ({ id }: Pipeline) => (await store.follow.watched()).find((one) => one.id === id);
    expect(await watched(pipeline)).toMatchObject({ mayStart: false, ifRecorded: true });
    expect(await store.follow.requestOnChange([pipeline.id])).toEqual([]);
    await database.query(
      "UPDATE etl.etl_runs SET started_at = started_at - interval '1 hour', finished_at = finished_at - interval '1 hour' WHERE pipeline_id = ANY ($1)",
      [[pipeline.id, fresh.id, refused.id]],
    );
    expect(await watched(pipeline)).toMatchObject({ mayStart: true, ifRecorded: true });
    expect(await watched(refused)).toMatchObject({ mayStart: false, ifRecorded: false });
    // Nobody can ask its source whether anything has changed.
    expect(await isOutdated(fresh)).toBe(false);
    expect(await store.follow.requestOnChange([pipeline.id, refused.id])).toEqual([pipeline.id]);
    await store.requests.cancel(pipeline.id);
  });
});

describe("pipelines that start whatever their source says", () => {
  const other = { source_query: "SELECT 2 AS id" };
  const configure = ({ id }: Pipeline, change: object): Promise<unknown> =>
    store.pipelines.update(id, change, { author: "test" });
  const failed = { kind: "failed", code: "FOLLOW_REFUSED", error: "no", mayPass: false } as const;

  it("are new, reset, or have another query; and not those that are quiet", async () => {
    const [fresh, quiet, changed, reset, disabled] = [
      await create(),
      await following(),
      await following(),
      await following(),
      await create({ enabled: false }),
    ];
    await configure(quiet, { description: "of no matter" });
    await configure(changed, other);
    await store.state.reset(reset.id);
    const all = [fresh, quiet, changed, reset, disabled];
    expect(await Promise.all(all.map(isOutdated))).toEqual([true, false, true, true, false]);
    expect(await store.follow.requestOnChange([fresh.id])).toEqual([fresh.id]);
    expect(await isOutdated(fresh)).toBe(false);
    await store.requests.cancel(fresh.id);
    for (const { id } of all) await store.pipelines.update(id, { enabled: false }, { author: "test" });
  });

  it("are not those that failed, unless they got another configuration; nor those whose run was cancelled", async () => {
    const [broken, cancelled] = [await create(), await create()];
    await store.queue.finishRun(await claim(broken), failed);
    expect(await isOutdated(broken)).toBe(false);
    expect(await store.follow.requestOnChange([broken.id])).toEqual([]);
    await configure(broken, other);
    expect(await isOutdated(broken)).toBe(true);
    expect(await store.follow.requestOnChange([broken.id])).toEqual([broken.id]);
    const again = (await store.queue.claimNext(randomUUID(), 60_000)) as Claim;
    await store.queue.finishRun(again, failed);
    expect(await isOutdated(broken)).toBe(false);

    const claimed = await claim(cancelled);
    await store.requests.cancel(cancelled.id);
    await store.queue.finishRun(claimed, { kind: "cancelled" });
    expect(await isOutdated(cancelled)).toBe(false);
    await configure(cancelled, other);
    expect(await isOutdated(cancelled)).toBe(true);
  });
});

describe("sweeps", () => {
  const dueNow = (id: string): Promise<unknown> =>
    database.query("UPDATE etl.etl_pipelines SET next_sweep_at = now() - interval '1 minute' WHERE id = $1", [id]);

  async function advance({ id }: Pipeline): Promise<string> {
    const { now, schedules } = await store.schedules.upcoming(1000, null);
    const found = schedules.find((schedule) => schedule.id === id && schedule.what === "sweep");
    if (found === undefined) throw new Error("no sweep is planned");
    return store.schedules.advance(found, { kind: "next", nextRunAt: new Date(now.getTime() + 3_600_000) });
  }

  it("start an idle pipeline when they are due, and stay wanted until one has ended", async () => {
    const pipeline = await following({ sweep: "1d" });
    expect(await advance(pipeline)).toBe("moved");
    await dueNow(pipeline.id);
    expect(await advance(pipeline)).toBe("fired");
    const claimed = (await store.queue.claimNext(randomUUID(), 60_000)) as Claim;
    expect(claimed).toMatchObject({ trigger: "sweep", pipeline: { id: pipeline.id } });
    expect(await store.follow.get(pipeline.id)).toMatchObject({ sweepWanted: true, nextSweepAt: expect.any(Date) });
    const next = { after: ["67"], parts: 2 };
    await store.batchCommit(claimed).noteSwept(3, next);
    await store.queue.finishRun(claimed, { kind: "succeeded" });
    expect(await store.follow.get(pipeline.id)).toMatchObject({
      sweepWanted: false,
      repaired: 3,
      lastRepaired: 3,
      lastSweepAt: expect.any(Date),
      sweepNext: next,
    });
    await store.schedules.requestSweeps();
    expect(await store.pipelines.get(pipeline.id)).toMatchObject({ status: "IDLE" });
  });

  it("that come due during a run start when it has ended, unless somebody cancels", async () => {
    const pipeline = await following({ sweep: "1d" });
    await advance(pipeline);
    const busy = await claim(pipeline);
    await dueNow(pipeline.id);
    expect(await advance(pipeline)).toBe("moved");
    await store.schedules.requestSweeps();
    await store.queue.finishRun(busy, { kind: "succeeded" });
    await store.schedules.requestSweeps();
    expect(await store.pipelines.get(pipeline.id)).toMatchObject({ status: "RUN_REQUESTED" });
    await store.requests.cancel(pipeline.id);
    await store.schedules.requestSweeps();
    expect(await store.pipelines.get(pipeline.id)).toMatchObject({ status: "IDLE" });
    expect(await store.follow.get(pipeline.id)).toMatchObject({ sweepWanted: false });
  });

  it("are planned again when they are changed", async () => {
    const pipeline = await following({ sweep: "1d" });
    await advance(pipeline);
    await store.pipelines.update(pipeline.id, { sweep: "2d" }, { author: "test" });
    expect(await store.follow.get(pipeline.id)).toMatchObject({ nextSweepAt: null });
  });
});
