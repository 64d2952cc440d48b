import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type Answer,
  claim,
  createPipeline,
  expectProblem,
  JSON_TYPE,
  pipelineBody,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(async () => {
  await api.database.forgetPipelines();
  await api.database.query("DELETE FROM etl.etl_answers");
});
afterAll(() => api.stop());

const post = (key: string, path: string, body?: object): Promise<Answer> =>
  api.send(path, {
    method: "POST",
    ...(body && { body: JSON.stringify(body) }),
    headers: { ...(body && JSON_TYPE), "idempotency-key": key },
  });

const replayed = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true";
const countPipelines = async () => (await api.get("/pipelines")).body.items.length;
const age = (interval: string) =>
  api.database.query("UPDATE etl.etl_answers SET begun_at = begun_at - $1::interval", [interval]);

describe("an Idempotency-Key", () => {
  it("gives the same answer again, with its status and headers, and does nothing twice", async () => {
    const key = randomUUID();
    const first = await post(key, "/api/v1/pipelines", pipelineBody("film"));
    expect(first.status).toBe(201);
    // The other way to write the path, and another order of the fields, are the same request.
    const again = await post(key, "/pipelines", Object.fromEntries(Object.entries(pipelineBody("film")).reverse()));
    expect(again).toMatchObject({ status: 201, text: first.text });
    for (const name of ["location", "etag", "content-type"]) {
      expect(again.headers.get(name)).toBe(first.headers.get(name));
    }
    expect([replayed(first), replayed(again)]).toEqual([false, true]);
    expect(await countPipelines()).toBe(1);
  });

  it("answers a repeated run request as it was, even when that run is over by now", async () => {
    const id = await createPipeline(api, "film");
    const key = randomUUID();
    const first = await post(key, `/pipelines/${id}/run`);
    const claimed = await api.store.queue.claimNext(randomUUID(), 60_000);
    if (claimed !== undefined) await api.store.queue.finishRun(claimed, { kind: "succeeded" });
    const again = await post(key, `/pipelines/${id}/run`);
    expect(again.body).toEqual(first.body);
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { status: "IDLE", run_request: 1 } });
  });

  it("that was used with another body, query or pipeline is refused", async () => {
    const key = randomUUID();
    await post(key, "/pipelines", pipelineBody("film"));
    expectProblem(await post(key, "/pipelines", pipelineBody("other")), "IDEMPOTENCY_KEY_REUSED");
    const run = randomUUID();
    await createPipeline(api, "third");
    await post(run, "/pipelines/film/run");
    expectProblem(await post(run, "/pipelines/third/run"), "IDEMPOTENCY_KEY_REUSED");
    expect(await api.get("/pipelines/third")).toMatchObject({ body: { status: "IDLE" } });
  });

  it("belongs to one operation: another one may use it, too", async () => {
    const key = randomUUID();
    await post(key, "/pipelines", pipelineBody("film"));
    expect(await post(key, "/pipelines/film/run")).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED" } });
  });

  it("of a refused request may be used again: nothing had happened", async () => {
    const id = await createPipeline(api, "film", { enabled: false });
    const key = randomUUID();
    expectProblem(await post(key, `/pipelines/${id}/run`), "PIPELINE_DISABLED");
    await api.patch(`/pipelines/${id}`, { enabled: true });
    const second = await post(key, `/pipelines/${id}/run`);
    expect(second).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED" } });
    expect(replayed(second)).toBe(false);
    const invalid = randomUUID();
    expectProblem(await post(invalid, "/pipelines", { name: "x y" }), "INVALID_REQUEST");
    expect(await post(invalid, "/pipelines", pipelineBody("other"))).toMatchObject({ status: 201 });
  });

  it("of a request under way gets 409 with Retry-After, and then its answer", async () => {
    const id = await createPipeline(api, "film");
    const letGo = await holdLock(api.database.url, "SELECT FROM etl.etl_pipelines WHERE id = $1 FOR UPDATE", [id]);
    const key = randomUUID();
    const body = { batch_size: 7 };
    const first = post(key, `/pipelines/${id}/update-config`, body);
    await until("it has begun", async () => (await api.database.query("SELECT FROM etl.etl_answers")).length > 0);
    const meanwhile = await post(key, `/pipelines/${id}/update-config`, body);
    expectProblem(meanwhile, "IDEMPOTENCY_KEY_IN_USE");
    expect(meanwhile.headers.get("retry-after")).toBe("1");
    await letGo();
    expect(await first).toMatchObject({ status: 200, body: { config_version: 2 } });
    expect(await post(key, `/pipelines/${id}/update-config`, body)).toMatchObject({ body: { config_version: 2 } });
  });

  it("lets exactly one of many at the same time through", async () => {
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(key, "/pipelines", pipelineBody("film"))));
    const fresh = answers.filter((answer) => answer.status === 201 && !replayed(answer));
    expect(fresh).toHaveLength(1);
    for (const { status, text } of answers) {
      if (status === 201) expect(text).toBe(fresh[0]?.text);
      else expect(status).toBe(409);
    }
    expect(await countPipelines()).toBe(1);
  });

  it("is forgotten after 24 hours, and one whose server died after a minute", async () => {
    const key = randomUUID();
    await post(key, "/pipelines", pipelineBody("film"));
    await age("23 hours 59 minutes");
    expect(replayed(await post(key, "/pipelines", pipelineBody("film")))).toBe(true);
    await age("2 minutes");
    expectProblem(await post(key, "/pipelines", pipelineBody("film")), "PIPELINE_NAME_TAKEN");

    await api.database.query("UPDATE etl.etl_answers SET begun_at = now()");
    const dead = randomUUID();
    await post(dead, "/pipelines/film/run");
    await api.database.query("UPDATE etl.etl_answers SET status = NULL, headers = NULL, body = NULL");
    expectProblem(await post(dead, "/pipelines/film/run"), "IDEMPOTENCY_KEY_IN_USE");
    await age("2 minutes");
    expect(await post(dead, "/pipelines/film/run")).toMatchObject({ status: 200 });
    await age("25 hours");
    await post(randomUUID(), "/pipelines/film/run");
    expect(await api.database.query("SELECT FROM etl.etl_answers")).toHaveLength(1);
  });

  it.each(["", "a b", "ü", "x".repeat(256)])("is refused when it is %j", async (key) => {
    await createPipeline(api, "film");
    const answer = await api.send("/pipelines/film/run", {
      method: "POST",
      headers: { "idempotency-key": key },
    });
    expectProblem(answer, "INVALID_REQUEST");
  });

  it("does not freeze what only tells how things are, and is not looked at by other methods", async () => {
    const id = await createPipeline(api, "film");
    const key = randomUUID();
    expect((await post(key, `/pipelines/${id}/reload-config`)).body).toMatchObject({ run_id: null });
    const { runId } = await claim(api, id);
    expect((await post(key, `/pipelines/${id}/reload-config`)).body).toMatchObject({ run_id: runId });
    for (const answer of [
      await post(key, `/pipelines/${id}/validate`),
      await post(key, `/pipelines/${id}/preview`),
      await post(key, "/preview", { source_query: "SELECT 1 AS id" }),
      await post(key, "/validate", pipelineBody("other")),
    ]) {
      expect(answer.status, answer.text).toBe(200);
    }
    expect(await api.database.query("SELECT operation FROM etl.etl_answers")).toEqual([]);
    const patch = { method: "PATCH", headers: { ...JSON_TYPE, "idempotency-key": "k" } };
    for (const batch_size of [3, 4]) {
      const answer = await api.send(`/pipelines/${id}`, { ...patch, body: JSON.stringify({ batch_size }) });
      expect(answer).toMatchObject({ status: 200, body: { batch_size } });
    }
  });
});
