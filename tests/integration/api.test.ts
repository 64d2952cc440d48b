import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Claim, RunOutcome } from "../../src/meta-store/meta-store.ts";
import { JSON_TYPE, pipelineBody, startTestApi, type TestApi } from "./api-client.ts";

const LEASE_MS = 60_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(() => api.database.query("TRUNCATE etl.etl_pipelines CASCADE"));
afterAll(() => api.stop());

const create = async (name: string, more: object = {}): Promise<string> => {
  const { status, body } = await api.post("/api/v1/pipelines", pipelineBody(name, more));
  expect(status, JSON.stringify(body)).toBe(201);
  return body.id;
};

/** As a runner would take it. */
async function claim(id: string): Promise<Claim> {
  expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({ status: 200 });
  const claimed = await api.store.claimNext(randomUUID(), LEASE_MS);
  if (claimed?.pipeline.id !== id) throw new Error("the pipeline was not claimed");
  return claimed;
}

async function runTo(id: string, outcome: RunOutcome): Promise<Claim> {
  const claimed = await claim(id);
  if (outcome.kind === "paused") await api.post(`/pipelines/${id}/pause`);
  await api.store.finishRun(claimed, outcome);
  return claimed;
}

const failed = { kind: "failed", code: "SOURCE_QUERY_FAILED", error: "It did not work." } as const;

const rowOf = (id: string): Promise<unknown> =>
  api.database.query("SELECT p::text AS row FROM etl.etl_pipelines p WHERE id = $1", [id]);

describe("creating a pipeline", () => {
  it("R3.2 answers 201 with its path and the defaults of the specification", async () => {
    const { status, headers, body } = await api.post("/api/v1/pipelines", {
      name: "film_dim",
      source_query: "SELECT 1 AS id",
      target_table: "analytics.film_dim",
    });
    expect(status).toBe(201);
    expect(headers.get("location")).toBe(`/api/v1/pipelines/${body.id}`);
    expect(body).toEqual({
      id: expect.stringMatching(UUID),
      name: "film_dim",
      description: "",
      type: "SQL",
      source_type: "postgres",
      source_connection: "main",
      source_query: "SELECT 1 AS id",
      target_table: "analytics.film_dim",
      target_key: [],
      create_target: false,
      mode: "full",
      incremental_key: null,
      incremental_id_key: null,
      batch_size: 1000,
      enabled: true,
      schedule_interval: null,
      tasks: [],
      status: "IDLE",
      config_version: 1,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(await api.get(headers.get("location") as string)).toMatchObject({ status: 200, body });
  });

  it("takes every field, and an id of one's own", async () => {
    const wanted = {
      id: "11111111-1111-1111-1111-111111111111",
      name: "film_dim_full",
      description: "Фильмы 🎬 'quoted' \"too\"",
      type: "TYPESCRIPT",
      source_type: "postgres",
      source_connection: "ugc",
      source_query: "",
      target_table: "analytics.film_dim",
      target_key: ["id", "язык"],
      create_target: true,
      mode: "incremental",
      incremental_key: "modified",
      incremental_id_key: "id",
      batch_size: 500,
      enabled: false,
      schedule_interval: "0 3 * * * Europe/Moscow",
      tasks: [
        { order_index: 1, task_type: "SQL", body: "SELECT 1 AS id", source_table: null, target_table: null },
        {
          order_index: 2,
          task_type: "TYPESCRIPT",
          body: 'rename {"a": "b"}',
          source_table: null,
          target_table: "analytics.other",
        },
      ],
    };
    expect(await api.post("/pipelines", wanted)).toMatchObject({ status: 201, body: wanted });
    expect(await api.get(`/pipelines/${wanted.id}`)).toMatchObject({ status: 200, body: wanted });
  });

  it("refuses a name or an id that is taken with 409", async () => {
    const id = await create("film_dim");
    const sameName = await api.post("/pipelines", pipelineBody("film_dim"));
    expect(sameName).toMatchObject({ status: 409, body: { code: "PIPELINE_NAME_TAKEN" } });
    expect(sameName.body.detail).toBe('There is already a pipeline named "film_dim".');
    const sameId = await api.post("/pipelines", pipelineBody("other", { id }));
    expect(sameId).toMatchObject({ status: 409, body: { code: "PIPELINE_ID_TAKEN" } });
    expect((await api.get("/pipelines")).body.items).toHaveLength(1);
  });
});

describe("reading pipelines", () => {
  it("R3.2 finds one by id in any case and by name, with and without the prefix", async () => {
    const id = await create("film_dim", { id: "abcdefab-0000-4000-8000-00000000000a" });
    for (const path of [id, id.toUpperCase(), "film_dim"]) {
      for (const prefix of ["/api/v1", ""]) {
        expect(await api.get(`${prefix}/pipelines/${path}`)).toMatchObject({ status: 200, body: { id } });
      }
    }
    expect(await api.get("/pipelines/FILM_DIM")).toMatchObject({ status: 404 });
    expect(await api.get("/pipelines/film_dim/")).toMatchObject({ status: 200 });
  });

  it("R3.6 pages the list by name, and each pipeline is on one page", async () => {
    const names = ["Zeta", "alpha", "beta", "b_2", "gamma"];
    for (const name of names) await create(name);
    const seen: string[][] = [];
    for (let after: string | null = ""; after !== null; ) {
      const { status, body } = await api.get(`/api/v1/pipelines?limit=2${after && `&after=${after}`}`);
      expect(status).toBe(200);
      seen.push(body.items.map(({ name }: { name: string }) => name));
      after = body.next;
    }
    expect(seen).toEqual([["Zeta", "alpha"], ["b_2", "beta"], ["gamma"]]);
  });

  it("gives a full last page no next, an unknown mark is fine, and an empty list is a list", async () => {
    expect((await api.get("/pipelines")).body).toEqual({ items: [], next: null });
    await create("alpha");
    await create("beta");
    expect((await api.get("/pipelines?limit=2")).body).toMatchObject({ next: null });
    expect((await api.get("/pipelines?after=alphabet")).body.items).toMatchObject([{ name: "beta" }]);
    expect((await api.get("/pipelines?after=zzz")).body).toEqual({ items: [], next: null });
  });

  it("R1.3 shows a row that was written by hand, even one that the API would refuse", async () => {
    await api.database.query(
      `INSERT INTO etl.etl_pipelines (name, description, source_connection, source_query, target_table)
       VALUES ('by_hand', repeat('x', 5000), 'Not A Name', repeat(' ', 100000), 'public.t')`,
    );
    expect(await api.get("/pipelines")).toMatchObject({ status: 200, body: { items: [{ name: "by_hand" }] } });
    expect(await api.get("/pipelines/by_hand")).toMatchObject({ status: 200 });
    const disabled = await api.patch("/pipelines/by_hand", { enabled: false });
    expect(disabled).toMatchObject({ status: 200, body: { enabled: false } });
    expect(await api.patch("/pipelines/by_hand", { source_query: "SELECT 1" })).toMatchObject({ status: 422 });
  });
});

describe("changing a pipeline", () => {
  it("R2.5 changes the fields that are named, and counts the version", async () => {
    const id = await create("film_dim");
    const changed = await api.patch(`/api/v1/pipelines/${id}`, { batch_size: 5, description: "new" });
    expect(changed).toMatchObject({ status: 200, body: { batch_size: 5, description: "new", config_version: 2 } });
    expect(await api.patch("/pipelines/film_dim", { name: "film" })).toMatchObject({ body: { config_version: 3 } });
    expect(await api.get("/pipelines/film")).toMatchObject({ body: { id, batch_size: 5, target_key: ["id"] } });
    expect(await api.get("/pipelines/film_dim")).toMatchObject({ status: 404 });
    expect(await api.patch("/pipelines/film", { batch_size: 5 })).toMatchObject({ body: { config_version: 3 } });
  });

  const refused: [string, object, string[]][] = [
    ["the status", { status: "RUNNING" }, ["/status"]],
    ["the id", { id: randomUUID() }, ["/id"]],
    ["the lease", { lease_epoch: 99, lease_owner: null }, ["/lease_epoch", "/lease_owner"]],
    ["the version", { config_version: 7 }, ["/config_version"]],
    ["the times", { created_at: "2020-01-01", updated_at: "2020-01-01" }, ["/created_at", "/updated_at"]],
    ["an unknown field beside a good one", { batch_size: 5, batchsize: 5 }, ["/batchsize"]],
    ["a task's own id", { tasks: [{ order_index: 1, task_type: "SQL", body: "SELECT 1", id: 1 }] }, ["/tasks/0/id"]],
    ["nothing", {}, [""]],
    ["a target outside the allow-list", { target_table: "public.t" }, ["/target_table"]],
    ["a target in the meta-store", { target_table: "etl.etl_pipelines" }, ["/target_table"]],
    ["incremental without a key", { mode: "incremental" }, ["/incremental_key"]],
    ["an id key without a key", { incremental_id_key: "id" }, ["/incremental_id_key"]],
    ["no query", { source_query: " " }, ["/source_query"]],
    [
      "several mistakes of several rules",
      { schedule_interval: "often", tasks: [{ order_index: 2, task_type: "SQL", body: "" }] },
      ["/tasks/0/order_index", "/tasks/0/body", "/schedule_interval"],
    ],
  ];
  it.each(refused)("R3.6 refuses %s with 422 and changes nothing", async (_, patch, pointers) => {
    const id = await create("film_dim");
    const before = await rowOf(id);
    const { status, body } = await api.patch(`/pipelines/${id}`, patch);
    expect({ status, code: body.code }).toEqual({ status: 422, code: "INVALID_REQUEST" });
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(pointers);
    expect(await rowOf(id)).toEqual(before);
  });

  it("refuses to create with fields that are not the caller's", async () => {
    const body = pipelineBody("film_dim", { status: "RUNNING", lease_epoch: 9, config_version: 9 });
    expect(await api.post("/pipelines", body)).toMatchObject({ status: 422 });
    expect(await api.get("/pipelines/film_dim")).toMatchObject({ status: 404 });
  });

  it("refuses a name that another pipeline has with 409", async () => {
    await create("a");
    await create("b");
    const { status, body } = await api.patch("/pipelines/b", { name: "a" });
    expect({ status, code: body.code }).toEqual({ status: 409, code: "PIPELINE_NAME_TAKEN" });
    expect(await api.get("/pipelines/b")).toMatchObject({ status: 200, body: { config_version: 1 } });
  });

  it("R2.5 while it runs, changes the safe fields and refuses the others, naming them", async () => {
    const id = await create("film_dim");
    await claim(id);
    const safe = { batch_size: 7, description: "d", schedule_interval: "15m", enabled: false };
    expect(await api.patch(`/pipelines/${id}`, safe)).toMatchObject({ status: 200, body: safe });
    const before = await rowOf(id);
    const { status, body } = await api.patch(`/pipelines/${id}`, { batch_size: 8, mode: "full", target_key: ["x"] });
    expect({ status, code: body.code }).toEqual({ status: 409, code: "FIELD_LOCKED_WHILE_RUNNING" });
    expect(body).toMatchObject({ pipeline_status: "RUNNING", errors: [{ pointer: "/target_key" }] });
    expect(body.detail).toBe("film_dim is RUNNING: target_key can change only when it is IDLE, PAUSED or FAILED.");
    expect(await rowOf(id)).toEqual(before);
  });
});

describe("deleting a pipeline", () => {
  it("answers 204 without a body, and then there is none", async () => {
    const id = await create("film_dim");
    await runTo(id, { kind: "succeeded" });
    expect(await api.delete(`/api/v1/pipelines/${id}`)).toMatchObject({ status: 204, text: "" });
    for (const path of ["", "/status", "/state", "/runs", `/runs/${id}`]) {
      expect(await api.get(`/pipelines/${id}${path}`)).toMatchObject({
        status: 404,
        body: { code: "PIPELINE_NOT_FOUND" },
      });
    }
    expect(await api.delete(`/pipelines/${id}`)).toMatchObject({ status: 404 });
  });

  it("refuses while a runner holds it", async () => {
    const id = await create("film_dim");
    await claim(id);
    expect(await api.delete("/pipelines/film_dim")).toMatchObject({
      status: 409,
      body: { code: "STATUS_CONFLICT", pipeline_status: "RUNNING" },
    });
  });
});

describe("asking for a run", () => {
  it("R3.3 requests it once, however often it is asked", async () => {
    const id = await create("film_dim");
    const first = await api.post(`/api/v1/pipelines/${id}/run`);
    expect(first).toMatchObject({ status: 200, body: { id, status: "RUN_REQUESTED", config_version: 1 } });
    const before = await rowOf(id);
    expect(await api.post("/pipelines/film_dim/run")).toMatchObject({ status: 200, body: first.body });
    expect(await rowOf(id)).toEqual(before);
    await api.store.claimNext(randomUUID(), LEASE_MS);
    expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({ status: 200, body: { status: "RUNNING" } });
    expect((await api.get(`/pipelines/${id}/runs`)).body.items).toHaveLength(1);
  });

  it.each<[string, RunOutcome]>([
    ["PAUSED", { kind: "paused" }],
    ["FAILED", failed],
    ["IDLE", { kind: "succeeded" }],
  ])("R3.3 runs again when it is %s", async (status, outcome) => {
    const id = await create("film_dim");
    await runTo(id, outcome);
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { status } });
    expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED" } });
  });

  it("R3.3 refuses a disabled pipeline, and one whose pause is not over, with 409 and the status", async () => {
    await create("off", { enabled: false });
    const off = await api.post("/pipelines/off/run");
    expect(off).toMatchObject({ status: 409, body: { code: "PIPELINE_DISABLED", hint: "Set enabled to true first." } });
    expect(await api.get("/pipelines/off")).toMatchObject({ body: { status: "IDLE" } });

    const id = await create("film_dim");
    await claim(id);
    await api.post(`/pipelines/${id}/pause`);
    expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({
      status: 409,
      body: { code: "STATUS_CONFLICT", pipeline_status: "PAUSE_REQUESTED" },
    });
  });

  it.each<[string, RequestInit]>([
    ["no body", {}],
    ["an empty object", { body: "{}", headers: JSON_TYPE }],
    ["an empty body that claims to be JSON", { body: "", headers: JSON_TYPE }],
    [
      "an empty form, as curl -d '' sends",
      { body: "", headers: { "content-type": "application/x-www-form-urlencoded" } },
    ],
  ])("takes %s", async (_, init) => {
    await create("film_dim");
    expect(await api.send("/pipelines/film_dim/run", { method: "POST", ...init })).toMatchObject({ status: 200 });
  });

  it("lets exactly the asked pipeline run when many ask at once", async () => {
    await create("film_dim");
    await create("other");
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.post("/pipelines/film_dim/run")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await api.get("/pipelines/other")).toMatchObject({ body: { status: "IDLE" } });
  });
});

describe("asking for a pause", () => {
  it("R3.3 requests it once, and a paused pipeline stays paused", async () => {
    const id = await create("film_dim");
    const claimed = await claim(id);
    for (let asked = 0; asked < 2; asked++) {
      expect(await api.post(`/api/v1/pipelines/${id}/pause`)).toMatchObject({
        status: 200,
        body: { id, status: "PAUSE_REQUESTED" },
      });
    }
    await api.store.finishRun(claimed, { kind: "paused" });
    expect(await api.post(`/pipelines/${id}/pause`)).toMatchObject({ status: 200, body: { status: "PAUSED" } });
  });

  it("R3.3 refuses where nothing runs, with 409 and the status", async () => {
    const id = await create("film_dim");
    const { status, headers, body } = await api.post(`/pipelines/${id}/pause`);
    expect(status).toBe(409);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(body).toMatchObject({ code: "STATUS_CONFLICT", pipeline_status: "IDLE" });
    expect(body.detail).toBe("film_dim is IDLE; it can be paused only when it is RUNNING, PAUSE_REQUESTED, PAUSED.");
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { status: "IDLE" } });
  });
});

describe("what happened", () => {
  it("R3.2 tells the status and the last run", async () => {
    const id = await create("film_dim");
    const fresh = { id, name: "film_dim", status: "IDLE", enabled: true, last_run: null };
    expect((await api.get(`/api/v1/pipelines/${id}/status`)).body).toEqual(fresh);
    await runTo(id, { kind: "succeeded" });
    await runTo(id, failed);
    const { body } = await api.get("/pipelines/film_dim/status");
    expect(body).toMatchObject({ status: "FAILED", last_run: { status: "FAILED", error: "It did not work." } });
    const { items } = (await api.get("/pipelines/film_dim/runs")).body;
    expect(body.last_run).toEqual(items[0]);
  });

  it("R6.3 tells the checkpoint, empty before the first batch", async () => {
    const id = await create("film_dim");
    expect((await api.get(`/api/v1/pipelines/${id}/state`)).body).toEqual({
      pipeline_id: id,
      last_processed_value: null,
      last_processed_id: null,
      scan_position: null,
      batches_committed: 0,
      updated_at: null,
    });
    await runTo(id, { kind: "paused" });
    await api.database.query(
      `UPDATE etl.etl_state SET last_processed_value = '2024-01-01 00:00:00.123456+00', last_processed_id = '9007199254740993',
         scan_position = '{a,"b, c"}', fingerprint = 'f', batch_no = 4 WHERE pipeline_id = $1`,
      [id],
    );
    expect((await api.get("/pipelines/film_dim/state")).body).toEqual({
      pipeline_id: id,
      last_processed_value: "2024-01-01 00:00:00.123456+00",
      last_processed_id: "9007199254740993",
      scan_position: ["a", "b, c"],
      batches_committed: 4,
      updated_at: expect.stringMatching(/Z$/),
    });
  });

  it("R6.1 lists the runs newest first, in pages, and reads each", async () => {
    const id = await create("film_dim");
    const claims: Claim[] = [];
    for (let run = 0; run < 3; run++) claims.unshift(await runTo(id, { kind: "succeeded" }));
    const first = (await api.get(`/api/v1/pipelines/${id}/runs?limit=2`)).body;
    const second = (await api.get(`/pipelines/film_dim/runs?limit=2&after=${first.next}`)).body;
    const runs = [...first.items, ...second.items];
    expect(runs.map((run) => run.id)).toEqual(claims.map(({ runId }) => runId));
    expect(second.next).toBeNull();
    expect((await api.get(`/pipelines/${id}/runs/${runs[0].id}`)).body).toEqual(runs[0]);
    expect(runs[0]).toEqual({
      id: expect.stringMatching(UUID),
      pipeline_id: id,
      attempt: expect.any(Number),
      status: "SUCCESS",
      trigger: "api",
      config_version: 1,
      runner_id: expect.stringMatching(UUID),
      started_at: expect.stringMatching(/Z$/),
      finished_at: expect.stringMatching(/Z$/),
      rows_read: 0,
      rows_written: 0,
      rows_unchanged: 0,
      rows_deduplicated: 0,
      rows_rejected: 0,
      rows_dropped: 0,
      rows_deleted: 0,
      batches: 0,
      error_code: null,
      error: null,
    });
  });

  it("does not show a run under another pipeline, and says which id is wrong", async () => {
    const id = await create("film_dim");
    await create("other");
    const { runId } = await runTo(id, { kind: "succeeded" });
    for (const path of [`other/runs/${runId}`, `film_dim/runs/${randomUUID()}`, "film_dim/runs/nonsense"]) {
      expect(await api.get(`/pipelines/${path}`)).toMatchObject({ status: 404, body: { code: "RUN_NOT_FOUND" } });
    }
    expect(await api.get("/pipelines/other/runs")).toMatchObject({ body: { items: [], next: null } });
    expect(await api.get("/pipelines/film_dim/runs?after=nonsense")).toMatchObject({ status: 200 });
    expect(await api.get(`/pipelines/film_dim/runs?after=${randomUUID()}`)).toMatchObject({ status: 200 });
  });
});
