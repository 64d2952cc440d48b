import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  claim,
  claimRequested,
  createPipeline,
  errorsOf,
  expectProblem,
  pipelineBody,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ TARGET_INDEXES: "films,mart_*" });
});
afterAll(() => api.stop());

const restore = (name: string) => api.post(`/api/v1/pipelines/${name}/restore-previous`);

it("R8.1 takes an index only when it is on the list, exactly or by a pattern", async () => {
  await createPipeline(api, "exact", { target_table: "es:films" });
  await createPipeline(api, "by_pattern", { target_table: "es:mart_a" });
  expectProblem(await api.post("/pipelines", pipelineBody("other", { target_table: "es:films2" })), "INVALID_REQUEST");
});

it("keeps target_options as they are, and refuses them for a table", async () => {
  const target_options = {
    mapping: { id: { type: "long" } },
    settings: { number_of_shards: 2 },
    keep_previous_hours: 1,
  };
  await createPipeline(api, "with_options", { target_table: "es:mart_b", target_options });
  expect((await api.get("/pipelines/with_options")).body.target_options).toEqual(target_options);
  const refused = await api.post("/pipelines", pipelineBody("table", { target_options }));
  expect(errorsOf(refused)).toEqual({ "/target_options": expect.stringMatching(/Only an index/) });
  const unknown = pipelineBody("odd", { target_table: "es:mart_c", target_options: { analyzer: "russian" } });
  expectProblem(await api.post("/pipelines", unknown), "INVALID_REQUEST");
});

it("refuses to merge where the fields of others would be lost all the same", async () => {
  const incremental = { target_table: "es:mart_g", mode: "incremental", incremental_key: "id" };
  const merging = { ...incremental, target_options: { write: "merge", adopt: true } };
  await createPipeline(api, "merging", merging);
  const full = await api.post("/pipelines", pipelineBody("full_merge", { ...merging, mode: "full" }));
  expect(errorsOf(full)).toEqual({ "/target_options/write": expect.stringMatching(/mode incremental/) });
  const changed = await api.patch("/pipelines/merging", { mode: "full" });
  expect(errorsOf(changed)).toEqual({ "/target_options/write": expect.stringMatching(/mode incremental/) });
  const target_options = { write: "merge", delete_when: "gone" };
  const deleting = await api.post("/pipelines", pipelineBody("deleting", { ...incremental, target_options }));
  expect(errorsOf(deleting)).toEqual({ "/target_options/write": expect.stringMatching(/delete_when/) });
});

it("asks for the previous index: once, while nothing runs, and only where there can be one", async () => {
  const id = await createPipeline(api, "restorable", { target_table: "es:mart_d" });
  expect(await restore("restorable")).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED" } });
  expectProblem(await restore("restorable"), "STATUS_CONFLICT");
  expectProblem(await api.post("/pipelines/restorable/run"), "STATUS_CONFLICT");
  expectProblem(await api.post("/pipelines/restorable/pause"), "STATUS_CONFLICT");
  const claimed = await claimRequested(api, id);
  expect(claimed).toMatchObject({ kind: "restore", firstRunId: claimed.runId });
  await api.store.queue.finishRun(claimed, { kind: "succeeded" });
  // The wish is fulfilled: the next run loads.
  const next = await claim(api, id);
  expect(next.kind).toBe("load");
  await api.store.queue.finishRun(next, { kind: "succeeded" });
  await createPipeline(api, "a_table");
  expectProblem(await restore("a_table"), "NOT_SUPPORTED");
  await createPipeline(api, "changes", { target_table: "es:mart_e", mode: "incremental", incremental_key: "id" });
  expectProblem(await restore("changes"), "NOT_SUPPORTED");
  expectProblem(await restore("nobody"), "PIPELINE_NOT_FOUND");
});

it("R4.7 a wish outlives a runner that is lost over it", async () => {
  const id = await createPipeline(api, "lost", { target_table: "es:mart_f" });
  await restore("lost");
  const first = await claimRequested(api, id);
  await api.database.query("UPDATE etl.etl_runs SET lease_expires_at = now() - interval '1 s' WHERE id = $1", [
    first.runId,
  ]);
  await api.store.queue.rescueExpired(randomUUID());
  const second = await claimRequested(api, id);
  expect(second).toMatchObject({ kind: "restore", firstRunId: first.runId });
  const third = await api.store.queue.startNextAttempt(second, { code: "SEARCH_BUSY", error: "It is busy." });
  expect(third).toMatchObject({ kind: "restore", firstRunId: first.runId });
});
