import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { claim, createPipeline } from "../support/api-client.ts";
import { type ApiWithRunner, startApiWithRunner } from "../support/api-with-runner.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";

const ROWS = 20_000;

let api: ApiWithRunner;
beforeAll(async () => {
  api = await startApiWithRunner();
});
beforeEach(async () => {
  await api.database.forgetPipelines();
  await api.database.query("DROP TABLE IF EXISTS content.film, analytics.film");
});
afterAll(() => api.stop());

/** A loaded mart whose next run is in the middle of its batches, and waits there until it is let go. */
async function runInTheMiddle(config: object, changeTheWorld: string): Promise<{ id: string; letGo(): Promise<void> }> {
  const { query, url } = api.database;
  await query(`CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, ${ROWS}) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id)`);
  const id = await api.create("film", {
    source_query: "SELECT id, title FROM content.film",
    batch_size: ROWS,
  });
  await runToTheEnd(id);
  await query(changeTheWorld);
  await api.patch(`/pipelines/${id}`, { batch_size: 100, ...config });
  await api.post(`/pipelines/${id}/run`);
  await until("batches are committed", async () => (await lastRun(id)).batches > 2 && (await lastRun(id)).attempt);
  const letGo = await holdLock(url, "LOCK TABLE analytics.film IN ACCESS EXCLUSIVE MODE");
  expect(await lastRun(id)).toMatchObject({ status: "RUNNING", config_version: 2, applied_version: 2 });
  return { id, letGo };
}

const lastRun = async (id: string) => (await api.get(`/pipelines/${id}/status`)).body.last_run ?? {};

async function runToTheEnd(id: string) {
  await api.post(`/pipelines/${id}/run`);
  return (await api.get(`/pipelines/${id}/status?wait=60s`)).body.last_run;
}

const ended = async (id: string) => (await api.get(`/pipelines/${id}/status?wait=60s`)).body.last_run;

describe("reload-config", () => {
  beforeAll(() => api.startRunner());

  it("R3.5 tells what a run has yet to take up, and it takes up batch_size between two batches", async () => {
    const { id, letGo } = await runInTheMiddle({}, "UPDATE content.film SET title = 'changed' WHERE id % 2 = 0");
    const before = await lastRun(id);
    await api.patch(`/pipelines/${id}`, { batch_size: ROWS, description: "In one go." });
    const pending = await api.post(`/api/v1/pipelines/${id}/reload-config`);
    expect(pending).toMatchObject({
      status: 200,
      body: {
        pipeline: { id, config_version: 3, batch_size: ROWS },
        run_id: before.id,
        applied_version: 2,
        pending_fields: ["description", "batch_size"],
      },
    });
    await letGo();
    const run = await ended(id);
    expect(run).toMatchObject({ status: "SUCCESS", rows_read: ROWS, config_version: 2, applied_version: 3 });
    // The batch that was held up, one that may have been read ahead, and the rest at once.
    expect(run.batches).toBeLessThanOrEqual(before.batches + 3);
  });

  it("R3.5 takes up a raised max_delete_percent", async () => {
    const { id, letGo } = await runInTheMiddle({ max_delete_percent: 10 }, "DELETE FROM content.film WHERE id % 4 = 0");
    await api.patch(`/pipelines/${id}`, { max_delete_percent: 30 });
    await letGo();
    expect(await ended(id)).toMatchObject({ status: "SUCCESS", rows_deleted: ROWS / 4, applied_version: 3 });
  });

  it("R3.5 takes up a lowered max_delete_percent", async () => {
    const { id, letGo } = await runInTheMiddle({}, "DELETE FROM content.film WHERE id % 4 = 0");
    await api.patch(`/pipelines/${id}`, { max_delete_percent: 10 });
    await letGo();
    expect(await ended(id)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_DELETIONS", rows_deleted: 0 });
  });

  it("R3.5 takes up a raised max_rejects", async () => {
    const { id, letGo } = await runInTheMiddle(
      { max_rejects: 0 },
      `UPDATE content.film SET title = 'changed';
       ALTER TABLE analytics.film ADD CHECK (id <= ${ROWS - 50}) NOT VALID`,
    );
    await api.patch(`/pipelines/${id}`, { max_rejects: 50 });
    await letGo();
    expect(await ended(id)).toMatchObject({ status: "SUCCESS", rows_rejected: 50, applied_version: 3 });
  });
});

describe("reload-config without a run under way", () => {
  beforeAll(() => api.stopRunner());

  it("R3.5 says that the next run uses everything; a run that has just begun has everything", async () => {
    const id = await createPipeline(api, "film");
    await api.patch(`/pipelines/${id}`, { batch_size: 5 });
    const idle = await api.post("/pipelines/film/reload-config");
    expect(idle.body).toMatchObject({ run_id: null, applied_version: null, pending_fields: [] });
    const { runId } = await claim(api, id);
    const begun = await api.post("/pipelines/film/reload-config");
    expect(begun.body).toMatchObject({ run_id: runId, applied_version: 2, pending_fields: [] });
    expect(await api.post("/pipelines/nobody/reload-config")).toMatchObject({ status: 404 });
  });
});
