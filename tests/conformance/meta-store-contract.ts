import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { newPipelineSchema, type Pipeline, type PipelineId } from "../../src/domain/pipeline.ts";
import type { PipelineStatus } from "../../src/domain/pipeline-status.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { RefusedRow } from "../../src/meta-store/ports/batch-commit.ts";
import type { Claim, RunOutcome, ScheduledPipeline } from "../../src/meta-store/ports/run-queue.ts";
import { until } from "../support/until.ts";

/** What the contract needs of an implementation beside the store: what time, a sink and an operator's hand do to it. */
export interface MetaStoreHarness {
  readonly store: MetaStore;
  /** Commits a batch that writes nothing. */
  commitBatch(claim: Claim, batch: Progress): Promise<{ status: string }>;
  /** As if its runner had been silent for too long. */
  expireLease(id: PipelineId): Promise<unknown>;
  /** As if its schedule had planned the next run for then. */
  planRun(id: PipelineId, inSeconds: number): Promise<unknown>;
  setStatus(id: PipelineId, status: PipelineStatus): Promise<unknown>;
}

type Progress = ReturnType<typeof progress>;

export const LEASE_MS = 30_000;

export function createPipeline(store: MetaStore, more: object = {}): Promise<Pipeline> {
  const config = newPipelineSchema.parse({
    name: `p_${randomUUID().slice(0, 8)}`,
    source_query: "SELECT 1 AS id",
    target_table: "analytics.t",
    target_key: ["id"],
    ...more,
  });
  return store.pipelines.create(config, "test");
}

export async function createClaimed(
  store: MetaStore,
  more: object = {},
  runner: string = randomUUID(),
): Promise<Claim> {
  const { id } = await createPipeline(store, more);
  await store.requests.run(id, "api");
  const claim = await store.queue.claimNext(runner, LEASE_MS);
  if (claim?.pipeline.id !== id) throw new Error("the pipeline was not claimed");
  return claim;
}

export async function findSchedule(store: MetaStore, id: PipelineId): Promise<ScheduledPipeline> {
  const { schedules } = await store.schedules.upcoming(1000, null);
  const found = schedules.find((schedule) => schedule.id === id);
  if (found === undefined) throw new Error("the pipeline has no schedule");
  return found;
}

function progress(batchNo: number, position: string[] = ["1"]) {
  return {
    position,
    fingerprint: "f",
    expectedBatchNo: batchNo,
    safePoint: null,
    effort: { bytes: 0, read_ms: 0, transform_ms: 0, write_ms: 0 },
    rejects: [] as RefusedRow[],
    settledRejects: [],
    rowsDeleted: 0,
    fillsTarget: false,
    counters: {
      rows_read: 3,
      rows_written: 2,
      rows_unchanged: 1,
      rows_deduplicated: 0,
      rows_rejected: 0,
      rows_dropped: 0,
      rows_added: 0,
    },
  };
}

/** The contract of `src/meta-store/meta-store.ts`, claim by claim. `open` gives a store without pipelines. */
export function describeMetaStore(name: string, open: () => Promise<MetaStoreHarness>): void {
  describe(`the meta-store ${name}`, () => {
    let harness: MetaStoreHarness;
    let store: MetaStore;
    beforeEach(async () => {
      harness = await open();
      store = harness.store;
    });
    const create = (more?: object): Promise<Pipeline> => createPipeline(store, more);
    const claimed = (more?: object, runner?: string): Promise<Claim> => createClaimed(store, more, runner);

    describe("configuration", () => {
      it("R2.1 keeps every field and gives the defaults of the specification", async () => {
        const made = await create({ name: "film_x" });
        expect(made).toMatchObject({
          name: "film_x",
          type: "SQL",
          source_type: "postgres",
          source_connection: "main",
          mode: "full",
          batch_size: 1000,
          enabled: true,
          status: "IDLE",
          config_version: 1,
          tasks: [],
        });
        expect(await store.pipelines.get("film_x")).toEqual(made);
        expect(await store.pipelines.get(made.id)).toEqual(made);
      });

      it("refuses a name or an id that is taken", async () => {
        const made = await create({ name: "twice" });
        await expect(create({ name: "twice" })).rejects.toMatchObject({ code: "PIPELINE_NAME_TAKEN" });
        await expect(create({ id: made.id })).rejects.toMatchObject({ code: "PIPELINE_ID_TAKEN" });
      });

      it("says which pipeline does not exist", async () => {
        await expect(store.pipelines.get("nothing")).rejects.toMatchObject({
          code: "PIPELINE_NOT_FOUND",
          message: 'There is no pipeline "nothing".',
        });
        await expect(store.pipelines.get(randomUUID())).rejects.toMatchObject({ code: "PIPELINE_NOT_FOUND" });
      });

      it("R2.2 keeps the tasks in their order", async () => {
        const tasks = [
          { order_index: 2, task_type: "TYPESCRIPT", body: "t", source_table: null, target_table: "analytics.u" },
          { order_index: 1, task_type: "SQL", body: "SELECT 1", source_table: null, target_table: null },
        ];
        const made = await create({ tasks });
        expect(made.tasks).toEqual([...tasks].reverse());
      });

      it("R2.5 while RUNNING changes the safe fields and refuses the others by name", async () => {
        const { pipeline } = await claimed();
        await expect(
          store.pipelines.update(pipeline.id, { mode: "incremental", batch_size: 5 }, { author: "t" }),
        ).rejects.toMatchObject({
          code: "FIELD_LOCKED_WHILE_RUNNING",
          problems: [{ pointer: "/mode" }],
        });
        const safe = { batch_size: 5, description: "d", schedule_interval: "15m", enabled: false };
        expect(await store.pipelines.update(pipeline.id, safe, { author: "t" })).toMatchObject(safe);
      });

      it("changes nothing when the check of the merged configuration refuses it", async () => {
        const made = await create();
        const refuse = (): void => {
          throw new Error("no");
        };
        await expect(
          store.pipelines.update(made.id, { batch_size: 9 }, { author: "t", check: refuse }),
        ).rejects.toThrow("no");
        expect(await store.pipelines.get(made.id)).toEqual(made);
      });

      it("pages through the pipelines by name, each exactly once", async () => {
        const names = ["b", "a", "C", "d_", "e"];
        for (const name of names) await create({ name });
        const seen: string[] = [];
        let after: string | undefined;
        do {
          const page = await store.pipelines.list({ limit: 2, after });
          seen.push(...page.items.map(({ name }) => name));
          after = page.next ?? undefined;
        } while (after !== undefined);
        expect(seen).toEqual([...names].sort());
      });
    });

    describe("requests", () => {
      it("R3.3 run on a disabled pipeline is refused and changes nothing", async () => {
        const { id } = await create({ enabled: false });
        await expect(store.requests.run(id, "api")).rejects.toMatchObject({ code: "PIPELINE_DISABLED" });
        expect(await store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
      });

      it("R3.3 pause is refused with the current status unless the pipeline runs", async () => {
        const { id } = await create();
        await expect(store.requests.pause(id)).rejects.toMatchObject({
          code: "STATUS_CONFLICT",
          extra: { pipeline_status: "IDLE" },
        });
      });

      it("R3.3 pause is idempotent, and run is refused until the pause took place", async () => {
        const claim = await claimed();
        expect(await store.requests.pause(claim.pipeline.id)).toMatchObject({ status: "PAUSE_REQUESTED" });
        expect(await store.requests.pause(claim.pipeline.id)).toMatchObject({ status: "PAUSE_REQUESTED" });
        await expect(store.requests.run(claim.pipeline.id, "api")).rejects.toMatchObject({ code: "STATUS_CONFLICT" });
        expect(await store.queue.finishRun(claim, { kind: "paused" })).toBe("PAUSED");
        expect(await store.requests.pause(claim.pipeline.id)).toMatchObject({ status: "PAUSED" });
        expect(await store.requests.run(claim.pipeline.id, "api")).toMatchObject({ status: "RUN_REQUESTED" });
      });

      it("run and pause are refused while a restore waits, runs or is held up: none of them becomes a load", async () => {
        const { id } = await create();
        const { run_request } = await store.requests.restore(id);
        const isRefused = async (status: PipelineStatus): Promise<void> => {
          const refusal = { code: "STATUS_CONFLICT", extra: { pipeline_status: status } };
          const message = expect.stringMatching(/previous target.*only be cancelled/);
          await expect(store.requests.run(id, "api")).rejects.toMatchObject({ ...refusal, message });
          await expect(store.requests.pause(id)).rejects.toMatchObject({ ...refusal, message });
          expect(await store.pipelines.get(id)).toMatchObject({ status, run_request });
        };
        await isRefused("RUN_REQUESTED");
        const claim = (await store.queue.claimNext(randomUUID(), LEASE_MS)) as Claim;
        expect(claim.kind).toBe("restore");
        await isRefused("RUNNING");
        const trouble = { code: "SEARCH_UNAVAILABLE", error: "It is away.", waitMs: 600_000, isNew: true };
        await store.queue.finishRun(claim, { kind: "waiting", ...trouble });
        await isRefused("RUN_REQUESTED");
        expect(await store.requests.cancel(id)).toMatchObject({ status: "IDLE" });
        expect(await store.requests.run(id, "api")).toMatchObject({ run_request: run_request + 1 });
        expect(await store.queue.claimNext(randomUUID(), LEASE_MS)).toMatchObject({ kind: "load" });
      });
    });

    describe("claims", () => {
      it("R4.2 gives a waiting pipeline to exactly one of eight runners, 200 times", async () => {
        const { id } = await create();
        for (let round = 1; round <= 200; round++) {
          await store.requests.run(id, "api");
          const claims = (
            await Promise.all(Array.from({ length: 8 }, () => store.queue.claimNext(randomUUID(), LEASE_MS)))
          ).filter((claim) => claim !== undefined);
          expect(claims).toHaveLength(1);
          expect(claims[0]?.epoch).toBe(round);
          await store.queue.finishRun(claims[0] as Claim, { kind: "succeeded" });
        }
        const { items } = await store.runs.list(id, { limit: 300 });
        expect(items.map(({ status }) => status)).toEqual(Array.from({ length: 200 }, () => "SUCCESS"));
      });

      it("serves the longest waiting first, and leaves disabled ones alone", async () => {
        const [first, second, disabled] = [await create(), await create(), await create()];
        for (const { id } of [first, second, disabled]) await store.requests.run(id, "api");
        await store.pipelines.update(disabled.id, { enabled: false }, { author: "t" });
        const runner = randomUUID();
        expect((await store.queue.claimNext(runner, LEASE_MS))?.pipeline.id).toBe(first.id);
        expect((await store.queue.claimNext(runner, LEASE_MS))?.pipeline.id).toBe(second.id);
        expect(await store.queue.claimNext(runner, LEASE_MS)).toBeUndefined();
      });

      it("R6.1 opens a run that says who runs what, and why", async () => {
        const claim = await claimed({}, "00000000-0000-4000-8000-000000000001");
        expect(await store.runs.get(claim.pipeline.id, claim.runId)).toMatchObject({
          status: "RUNNING",
          attempt: 1,
          trigger: "api",
          config_version: 1,
          runner_id: "00000000-0000-4000-8000-000000000001",
          finished_at: null,
          rows_read: 0,
        });
      });

      it("extends a lease and brings back what was asked for", async () => {
        const claim = await claimed();
        expect(await store.queue.extendLease(claim, LEASE_MS)).toBe("RUNNING");
        await store.requests.pause(claim.pipeline.id);
        expect(await store.queue.extendLease(claim, LEASE_MS)).toBe("PAUSE_REQUESTED");
        expect(await store.queue.extendLease({ ...claim, epoch: claim.epoch - 1 }, LEASE_MS)).toBeUndefined();
      });

      it("a pause asked for after the last batch is still a pause", async () => {
        const claim = await claimed();
        await store.requests.pause(claim.pipeline.id);
        expect(await store.queue.finishRun(claim, { kind: "succeeded" })).toBe("PAUSED");
        expect(await store.runs.get(claim.pipeline.id, claim.runId)).toMatchObject({ status: "PAUSED" });
      });

      it("R6.2 a failed run says why, and the pipeline waits for somebody to act", async () => {
        const claim = await claimed();
        const error = "x".repeat(10_000);
        expect(
          await store.queue.finishRun(claim, { kind: "failed", mayPass: false, code: "SOURCE_QUERY_FAILED", error }),
        ).toBe("FAILED");
        const run = await store.runs.get(claim.pipeline.id, claim.runId);
        expect(run).toMatchObject({ status: "FAILED", error_code: "SOURCE_QUERY_FAILED" });
        expect(run.error).toHaveLength(4000);
        expect(await store.queue.claimNext(randomUUID(), LEASE_MS)).toBeUndefined();
      });

      it("counts what a batch deleted with it, and knows that the target may rightly be empty then", async () => {
        const claim = await claimed();
        const filled = async () => (await store.state.get(claim.pipeline.id)).targetMark?.filled;
        await store.batchCommit(claim).noteTarget({ identity: "1" });
        await harness.commitBatch(claim, { ...progress(0), rowsDeleted: 2, fillsTarget: true });
        expect(await filled()).toBe(true);
        await harness.commitBatch(claim, { ...progress(1), rowsDeleted: 3 });
        expect(await filled()).toBe(false);
        await harness.commitBatch(claim, { ...progress(2), fillsTarget: true });
        await harness.commitBatch(claim, progress(3));
        expect(await filled()).toBe(true);
        const run = await store.runs.get(claim.pipeline.id, claim.runId);
        expect(run).toMatchObject({ rows_deleted: 5, rows_read: 12, batches: 4 });
      });

      it("a stopped runner hands its pipeline to the next one", async () => {
        const claim = await claimed();
        expect(await store.queue.finishRun(claim, { kind: "handed_back" })).toBe("RUN_REQUESTED");
        expect(await store.queue.claimNext(randomUUID(), LEASE_MS)).toMatchObject({
          epoch: claim.epoch + 1,
          trigger: "recovery",
        });
      });
    });

    describe("the next attempt", () => {
      const failure = { code: "DATABASE_BUSY", error: "It took too long." } as const;

      it("R6.1 ends the run as failed and opens another one under the same lease", async () => {
        const claim = await claimed();
        const next = await store.queue.startNextAttempt(claim, failure);
        expect(next).toMatchObject({
          attempt: 2,
          trigger: claim.trigger,
          epoch: claim.epoch,
          runnerId: claim.runnerId,
          pipeline: { id: claim.pipeline.id, status: "RUNNING" },
        });
        expect(next.runId).not.toBe(claim.runId);
        expect(await store.runs.get(claim.pipeline.id, claim.runId)).toMatchObject({
          status: "FAILED",
          error_code: "DATABASE_BUSY",
          error: "It took too long.",
        });
        expect(await store.runs.get(claim.pipeline.id, next.runId)).toMatchObject({
          status: "RUNNING",
          attempt: 2,
          trigger: "api",
          rows_read: 0,
        });
        expect((await store.queue.startNextAttempt(next, failure)).attempt).toBe(3);
      });

      it("R4.4 goes on at the checkpoint as it is now, with the configuration as it is now", async () => {
        const claim = await claimed();
        await harness.commitBatch(claim, progress(0, ["k"]));
        await store.pipelines.update(claim.pipeline.id, { batch_size: 5 }, { author: "t" });
        const next = await store.queue.startNextAttempt(claim, failure);
        expect(next.checkpoint).toEqual({ scanPosition: ["k"], batchNo: 1, fingerprint: "f" });
        expect(next.pipeline).toMatchObject({ batch_size: 5, config_version: 2 });
        await harness.commitBatch(next, progress(1, ["l"]));
        expect(await store.runs.get(claim.pipeline.id, next.runId)).toMatchObject({ batches: 1, config_version: 2 });
        await expect(harness.commitBatch(claim, progress(1))).rejects.toMatchObject({ code: "LEASE_LOST" });
      });

      it("keeps a pause that was asked for meanwhile", async () => {
        const claim = await claimed();
        await store.requests.pause(claim.pipeline.id);
        const next = await store.queue.startNextAttempt(claim, failure);
        expect(next.pipeline.status).toBe("PAUSE_REQUESTED");
        expect(await store.queue.finishRun(next, { kind: "paused" })).toBe("PAUSED");
      });

      it("R4.7 is refused to a runner whose lease was taken, and changes nothing", async () => {
        const claim = await claimed();
        await harness.expireLease(claim.pipeline.id);
        await store.queue.rescueExpired(randomUUID());
        const other = (await store.queue.claimNext(randomUUID(), LEASE_MS)) as Claim;
        await expect(store.queue.startNextAttempt(claim, failure)).rejects.toMatchObject({ code: "LEASE_LOST" });
        expect(await store.runs.get(claim.pipeline.id, other.runId)).toMatchObject({ status: "RUNNING" });
        expect((await store.runs.list(claim.pipeline.id, { limit: 10 })).items).toHaveLength(2);
      });

      it("cannot be started twice from the same run", async () => {
        const claim = await claimed();
        const next = await store.queue.startNextAttempt(claim, failure);
        await expect(store.queue.startNextAttempt(claim, failure)).rejects.toMatchObject({ code: "LEASE_LOST" });
        expect(await store.queue.finishRun(next, { kind: "succeeded" })).toBe("IDLE");
      });
    });

    describe("schedules", () => {
      /** Created, planned, and due a moment ago. */
      async function due(more: object = {}): Promise<ScheduledPipeline> {
        const made = await create({ schedule_interval: "15m", ...more });
        await harness.planRun(made.id, -1);
        return scheduleOf(made.id);
      }

      const scheduleOf = (id: PipelineId): Promise<ScheduledPipeline> => findSchedule(store, id);

      const muchLater = { kind: "next", nextRunAt: new Date("2100-01-01T00:00:00.123Z") } as const;

      it("R4.8 come by due time, first those without a plan, with the server's clock", async () => {
        const [third, second, first] = [
          await create({ name: "c", schedule_interval: "1h" }),
          await create({ name: "b", schedule_interval: "@daily" }),
          await create({ name: "a", schedule_interval: "0 3 * * * Asia/Tokyo" }),
        ];
        await create({ schedule_interval: null });
        await create({ schedule_interval: "1h", enabled: false });
        await harness.planRun(second.id, 60);
        await harness.planRun(third.id, 120);
        const { now, schedules } = await store.schedules.upcoming(10, null);
        expect(schedules).toMatchObject([
          { id: first.id, name: "a", schedule: "0 3 * * * Asia/Tokyo", nextRunAt: null },
          { id: second.id, name: "b", schedule: "@daily", nextRunAt: expect.any(Date) },
          { id: third.id, name: "c", schedule: "1h", nextRunAt: expect.any(Date) },
        ]);
        expect(Math.abs(now.getTime() - Date.now())).toBeLessThan(3_600_000);
        expect((await store.schedules.upcoming(1, null)).schedules).toHaveLength(1);
      });

      it("say what time it is even when there are none", async () => {
        expect(await store.schedules.upcoming(10, null)).toEqual({
          now: expect.any(Date),
          nextAttemptAt: null,
          schedules: [],
        });
      });

      it("R4.8 a due one requests its run and moves on", async () => {
        const schedule = await due();
        expect(await store.schedules.advance(schedule, muchLater)).toBe("fired");
        expect(await store.pipelines.get(schedule.id)).toMatchObject({
          status: "RUN_REQUESTED",
          next_run_at: muchLater.nextRunAt,
        });
        expect(await store.queue.claimNext(randomUUID(), LEASE_MS)).toMatchObject({ trigger: "schedule" });
      });

      it("R4.8 one tick fires once, whoever asks", async () => {
        const { id } = await create({ schedule_interval: "1s" });
        for (let round = 0; round < 50; round++) {
          await harness.setStatus(id, "IDLE");
          await harness.planRun(id, 0);
          const schedule = await scheduleOf(id);
          const outcomes = await Promise.all(
            Array.from({ length: 8 }, () => store.schedules.advance(schedule, muchLater)),
          );
          expect(outcomes.filter((outcome) => outcome !== "taken")).toEqual(["fired"]);
        }
      });

      it("R4.8 planning a new one fires nothing", async () => {
        const { id } = await create({ schedule_interval: "15m" });
        const schedule = await scheduleOf(id);
        expect(await store.schedules.advance(schedule, muchLater)).toBe("moved");
        expect(await store.schedules.advance(schedule, muchLater)).toBe("taken");
        expect(await store.pipelines.get(id)).toMatchObject({ status: "IDLE", next_run_at: muchLater.nextRunAt });
      });

      it.each(["RUN_REQUESTED", "PAUSED", "FAILED"] as const)(
        "R4.8 one that is %s is only moved on",
        async (status) => {
          const schedule = await due();
          await harness.setStatus(schedule.id, status);
          expect(await store.schedules.advance(schedule, muchLater)).toBe("moved");
          expect(await store.pipelines.get(schedule.id)).toMatchObject({ status, next_run_at: muchLater.nextRunAt });
        },
      );

      it.each(["RUNNING", "PAUSE_REQUESTED"])(
        "R4.8 one that is %s is only moved on, and its lease stays",
        async (status) => {
          const claim = await claimed({ schedule_interval: "15m" });
          if (status === "PAUSE_REQUESTED") await store.requests.pause(claim.pipeline.id);
          await harness.planRun(claim.pipeline.id, -1);
          expect(await store.schedules.advance(await scheduleOf(claim.pipeline.id), muchLater)).toBe("moved");
          expect(await store.queue.extendLease(claim, LEASE_MS)).toBe(status);
        },
      );

      it("a plan made for the schedule before the change is refused", async () => {
        const { id } = await create({ schedule_interval: "15m" });
        const before = await scheduleOf(id);
        await store.pipelines.update(id, { schedule_interval: "1h" }, { author: "t" });
        expect(await store.schedules.advance(before, muchLater)).toBe("taken");
      });

      it("one that cannot be read is left alone until it is changed", async () => {
        const { id } = await create({ schedule_interval: "nonsense" });
        expect(await store.schedules.advance(await scheduleOf(id), { kind: "refused", error: "It is nonsense." })).toBe(
          "moved",
        );
        expect((await store.schedules.upcoming(10, null)).schedules).toEqual([]);
        await store.pipelines.update(id, { schedule_interval: "1h" }, { author: "t" });
        expect(await scheduleOf(id)).toMatchObject({ schedule: "1h", nextRunAt: null });
      });

      it("wakes a listener when a schedule is made, changed or switched on", async () => {
        let woken = 0;
        const subscription = await store.queue.onWork(() => {
          woken += 1;
        });
        const wakes = async (change: () => Promise<unknown>): Promise<void> => {
          const before = woken;
          await change();
          await until("the listener is woken", () => woken > before);
        };
        let id = "" as PipelineId;
        await wakes(async () => {
          ({ id } = await create({ schedule_interval: "1h" }));
        });
        await wakes(() => store.pipelines.update(id, { schedule_interval: "2h" }, { author: "t" }));
        await store.pipelines.update(id, { enabled: false }, { author: "t" });
        await wakes(() => store.pipelines.update(id, { enabled: true }, { author: "t" }));
        await subscription.close();
      });
    });

    describe("checkpoints", () => {
      it("R4.4 moves by exactly one batch and adds the counters", async () => {
        const claim = await claimed();
        await harness.commitBatch(claim, progress(0, ["a", "1"]));
        await harness.commitBatch(claim, progress(1, ["b", "2"]));
        expect(await store.state.get(claim.pipeline.id)).toMatchObject({ scanPosition: ["b", "2"], batchNo: 2 });
        expect(await store.runs.get(claim.pipeline.id, claim.runId)).toMatchObject({
          rows_read: 6,
          rows_written: 4,
          rows_unchanged: 2,
          batches: 2,
        });
      });

      it("refuses to commit the same batch twice", async () => {
        const claim = await claimed();
        await harness.commitBatch(claim, progress(0));
        await expect(harness.commitBatch(claim, progress(0))).rejects.toMatchObject({ code: "LEASE_LOST" });
        expect(await store.state.get(claim.pipeline.id)).toMatchObject({ batchNo: 1 });
      });

      it("refuses a batch whose rows do not add up", async () => {
        const claim = await claimed();
        const batch = progress(0);
        const counters = { ...batch.counters, rows_written: 1 };
        await expect(harness.commitBatch(claim, { ...batch, counters })).rejects.toMatchObject({
          code: "BATCH_UNBALANCED",
        });
      });

      it("R4.7 refuses the commit of a runner whose lease ran out or was taken", async () => {
        const claim = await claimed();
        await harness.expireLease(claim.pipeline.id);
        await expect(harness.commitBatch(claim, progress(0))).rejects.toMatchObject({ code: "LEASE_LOST" });
        await store.queue.rescueExpired(randomUUID());
        const next = (await store.queue.claimNext(claim.runnerId, LEASE_MS)) as Claim;
        expect(next.epoch).toBe(claim.epoch + 1);
        await expect(harness.commitBatch(claim, progress(0))).rejects.toMatchObject({ code: "LEASE_LOST" });
        await expect(store.queue.finishRun(claim, { kind: "succeeded" })).rejects.toMatchObject({ code: "LEASE_LOST" });
        await harness.commitBatch(next, progress(0));
        expect(await store.state.get(claim.pipeline.id)).toMatchObject({ batchNo: 1 });
      });

      it("brings a pause request back with the commit", async () => {
        const claim = await claimed();
        await store.requests.pause(claim.pipeline.id);
        expect(await harness.commitBatch(claim, progress(0))).toMatchObject({ status: "PAUSE_REQUESTED" });
      });

      it("forgets the position when a run succeeds, and keeps it when it is paused or fails", async () => {
        const claim = await claimed();
        await harness.commitBatch(claim, progress(0, ["k"]));
        await store.queue.finishRun(claim, { kind: "failed", mayPass: false, code: "INTERNAL", error: "e" });
        await store.requests.run(claim.pipeline.id, "api");
        const second = (await store.queue.claimNext(randomUUID(), LEASE_MS)) as Claim;
        expect(second.checkpoint).toEqual({ scanPosition: ["k"], batchNo: 1, fingerprint: "f" });
        await store.queue.finishRun(second, { kind: "succeeded" });
        expect(await store.state.get(claim.pipeline.id)).toMatchObject({ scanPosition: null });
      });
    });

    describe("rejects of full loads", () => {
      const refused = { row: { id: "1" }, key: { id: "1" }, code: "ROW_REFUSED", error: "It does not fit." };
      const counters = { ...progress(0).counters, rows_read: 4, rows_rejected: 1 };

      const FAILED = { kind: "failed", mayPass: false, code: "INTERNAL", error: "e" } as const;

      async function begun(id: PipelineId, resumed: boolean): Promise<Claim> {
        const claim = (await store.queue.claimNext(randomUUID(), LEASE_MS)) as Claim;
        expect(claim.pipeline.id).toBe(id);
        const facts = { dataPath: null, strategy: "s", estimatedRows: null, resumed };
        await store.batchCommit(claim).describeRun(facts);
        return claim;
      }

      const runsWithRejects = async (id: PipelineId) =>
        (await store.rejects.list(id, { limit: 10 })).items.map(({ run_id }) => run_id);

      async function loadedWithReject(outcome: RunOutcome): Promise<Claim> {
        const { id } = await create();
        await store.requests.run(id, "api");
        const claim = await begun(id, false);
        await harness.commitBatch(claim, { ...progress(0), rejects: [refused], counters });
        await store.queue.finishRun(claim, outcome);
        expect(await runsWithRejects(id)).toEqual([claim.runId]);
        return claim;
      }

      it("stay when the previous target is brought back, and go with the next load", async () => {
        const { pipeline, runId } = await loadedWithReject({ kind: "succeeded" });
        await store.requests.run(pipeline.id, "api");
        await store.queue.finishRun(await begun(pipeline.id, false), FAILED);
        await store.requests.restore(pipeline.id);
        await expect(store.rejects.retry(pipeline.id, undefined)).rejects.toMatchObject({ code: "STATUS_CONFLICT" });
        expect(await store.rejects.toRetry(pipeline.id, 10)).toEqual([]);
        await store.queue.finishRun(await begun(pipeline.id, false), { kind: "succeeded" });
        expect(await runsWithRejects(pipeline.id)).toEqual([runId]);
        await store.requests.run(pipeline.id, "api");
        await store.queue.finishRun(await begun(pipeline.id, false), { kind: "succeeded" });
        expect(await runsWithRejects(pipeline.id)).toEqual([]);
      });

      it("stay when a restore failed between the runs of their load", async () => {
        const { pipeline, runId } = await loadedWithReject(FAILED);
        await store.requests.restore(pipeline.id);
        await store.queue.finishRun(await begun(pipeline.id, false), FAILED);
        await store.requests.run(pipeline.id, "api");
        await store.queue.finishRun(await begun(pipeline.id, true), { kind: "succeeded" });
        expect(await runsWithRejects(pipeline.id)).toEqual([runId]);
      });
    });

    describe("recovery", () => {
      it("R4.7 takes a lost pipeline back: the run failed, the pipeline goes on", async () => {
        const claim = await claimed();
        expect(await store.queue.rescueExpired(randomUUID())).toEqual([]);
        await harness.expireLease(claim.pipeline.id);
        expect(await store.queue.rescueExpired(randomUUID())).toMatchObject([
          { id: claim.pipeline.id, status: "RUN_REQUESTED" },
        ]);
        expect(await store.runs.get(claim.pipeline.id, claim.runId)).toMatchObject({
          status: "FAILED",
          error_code: "RUNNER_LOST",
        });
        expect(await store.queue.claimNext(randomUUID(), LEASE_MS)).toMatchObject({ trigger: "recovery" });
      });

      it("R4.7 says that the runner lives when it takes its own pipeline back", async () => {
        const claim = await claimed();
        await harness.expireLease(claim.pipeline.id);
        expect(await store.queue.rescueExpired(claim.runnerId)).toMatchObject([{ code: "RUNNER_CUT_OFF" }]);
        expect(await store.runs.get(claim.pipeline.id, claim.runId)).toMatchObject({
          status: "FAILED",
          error_code: "RUNNER_CUT_OFF",
        });
      });

      it("R4.7 a lost pause request becomes PAUSED", async () => {
        const claim = await claimed();
        await store.requests.pause(claim.pipeline.id);
        await harness.expireLease(claim.pipeline.id);
        expect(await store.queue.rescueExpired(randomUUID())).toMatchObject([{ status: "PAUSED" }]);
      });

      it("R4.7 gives up after three losses in a row without a committed batch", async () => {
        const { id } = await create();
        await store.requests.run(id, "api");
        const statuses: (string | undefined)[] = [];
        for (let loss = 0; loss < 3; loss++) {
          await store.queue.claimNext(randomUUID(), LEASE_MS);
          await harness.expireLease(id);
          statuses.push((await store.queue.rescueExpired(randomUUID()))[0]?.status);
        }
        expect(statuses).toEqual(["RUN_REQUESTED", "RUN_REQUESTED", "FAILED"]);
      });

      it("R4.7 does not give up as long as batches are committed", async () => {
        const { id } = await create();
        await store.requests.run(id, "api");
        for (let loss = 0; loss < 4; loss++) {
          const claim = (await store.queue.claimNext(randomUUID(), LEASE_MS)) as Claim;
          await harness.commitBatch(claim, progress(loss));
          await harness.expireLease(id);
          expect((await store.queue.rescueExpired(randomUUID()))[0]?.status).toBe("RUN_REQUESTED");
        }
      });
    });
  });
}
