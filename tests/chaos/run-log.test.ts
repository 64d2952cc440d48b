import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunLogLine } from "../../src/domain/run-log.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { type Chaos, diedAt, openChaos } from "../support/chaos.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";

/** What is left of the log of a run when its runner is killed, or the log cannot be written. */

let chaos: Chaos;
beforeEach(async () => {
  chaos = await openChaos("stream");
  await chaos.query(`CREATE TABLE content.film AS SELECT n AS id FROM generate_series(1, 100) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id)`);
});
afterEach(() => chaos.close());

const create = () =>
  chaos.create({
    name: "film",
    source_query: "SELECT id FROM content.film",
    target_table: "analytics.film",
    target_key: ["id"],
    create_target: true,
    batch_size: 10,
  });

async function logOf(runId: string): Promise<RunLogLine[]> {
  const { id } = await chaos.store.pipelines.get("film");
  return (await chaos.store.runLogs.read(id, runId, { limit: 200 })).items;
}

const messagesOf = (lines: readonly RunLogLine[]): string[] => lines.map(({ message }) => message);

describe("R9 the log of a run", () => {
  it("R9 has what was written before its runner was killed, and then the reason", async () => {
    const pipeline = await create();
    await chaos.store.requests.run(pipeline.id, "api");
    // Long enough for a write after the third batch.
    await diedAt(chaos, chaos.runner("batch_committed:4:delay:2500,batch_committed:5:kill"), "batch_committed");
    const [lost] = await askedRuns(chaos.store, pipeline.id);
    const before = await logOf(lost?.id as string);
    expect(messagesOf(before)).toEqual(["run started", "load opened", ...Array(4).fill("batch committed")]);

    chaos.runner();
    await chaos.atRest();
    const after = await until("the reason is there", async () => {
      const lines = await logOf(lost?.id as string);
      return lines.length > before.length && lines;
    });
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.at(-1)).toMatchObject({
      level: "error",
      message: "pipeline rescued from a lost runner",
      fields: { code: "RUNNER_LOST", status: "RUN_REQUESTED" },
    });
    const [second] = await askedRuns(chaos.store, pipeline.id);
    expect(second).toMatchObject({ status: "SUCCESS", trigger: "recovery" });
  });

  it("R9 waits, and its run does not, while nobody can write it", async () => {
    const unlock = await holdLock(chaos.database.url, "LOCK TABLE etl.etl_run_logs IN ACCESS EXCLUSIVE MODE");
    const pipeline = await create();
    await chaos.store.requests.run(pipeline.id, "api");
    const runner = chaos.runner();
    await chaos.atRest();
    const [run] = await askedRuns(chaos.store, pipeline.id);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: 100 });
    await runner.untilPrinted("run logs cannot be written; trying again");
    await unlock();
    const lines = await until("the log is written", async () => {
      const found = await logOf(run?.id as string);
      return found.length === 13 && found;
    });
    expect(messagesOf(lines)).toEqual([
      "run started",
      "load opened",
      ...Array(10).fill("batch committed"),
      "run ended",
    ]);
  });

  it("R9 is lost, and its run is not, when it may not be written", async () => {
    await chaos.query("REVOKE INSERT ON etl.etl_run_logs FROM vitrina_meta");
    const pipeline = await create();
    await chaos.store.requests.run(pipeline.id, "api");
    const runner = chaos.runner();
    await chaos.atRest();
    const [run] = await askedRuns(chaos.store, pipeline.id);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: 100 });
    await runner.untilPrinted("lines of run logs were lost");
    expect(await logOf(run?.id as string)).toEqual([]);
  });

  it("R9 is written to its end by a runner that is asked to stop", async () => {
    const pipeline = await create();
    await chaos.store.requests.run(pipeline.id, "api");
    const runner = chaos.runner("batch_committed:3:delay:1500", { STOP_TIMEOUT_SECONDS: "20" });
    await runner.untilPrinted("FAULT batch_committed delay");
    expect(await runner.stop()).toBe(0);
    const [run] = await askedRuns(chaos.store, pipeline.id);
    const lines = await logOf(run?.id as string);
    expect(lines.at(-1)).toMatchObject({ message: "run ended", fields: { outcome: "handed_back", batches: 3 } });
  });
});
