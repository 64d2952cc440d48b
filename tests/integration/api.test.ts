import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  claim,
  createPipeline,
  pipelineBody,
  rowOf,
  runTo,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(() => api.database.forgetPipelines());
afterAll(() => api.stop());

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
      add_columns: false,
      allow_empty: false,
      max_delete_percent: 50,
      max_rejects: 100,
      null_cursor: "reject",
      lookback_seconds: 0,
      lookback_numbers: 0,
      mode: "full",
      follow: {
        check_every_seconds: 1,
        full_compare_above_percent: 30,
        max_changes: 1_000_000,
        sweep_parts: 1,
        tables: {},
      },
      sweep: null,
      incremental_key: null,
      incremental_id_key: null,
      batch_size: 1000,
      enabled: true,
      schedule_interval: null,
      retry_for_seconds: 3600,
      target_options: {},
      tasks: [],
      status: "IDLE",
      waiting: null,
      run_request: 0,
      next_run_at: null,
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
    const id = await createPipeline(api, "film_dim");
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
    const id = await createPipeline(api, "film_dim", { id: "abcdefab-0000-4000-8000-00000000000a" });
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
    for (const name of names) await createPipeline(api, name);
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
    await createPipeline(api, "alpha");
    await createPipeline(api, "beta");
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
    const id = await createPipeline(api, "film_dim");
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
    const id = await createPipeline(api, "film_dim");
    const before = await rowOf(api, id);
    const { status, body } = await api.patch(`/pipelines/${id}`, patch);
    expect({ status, code: body.code }).toEqual({ status: 422, code: "INVALID_REQUEST" });
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(pointers);
    expect(await rowOf(api, id)).toEqual(before);
  });

  it("refuses to create with fields that are not the caller's", async () => {
    const body = pipelineBody("film_dim", { status: "RUNNING", lease_epoch: 9, config_version: 9 });
    expect(await api.post("/pipelines", body)).toMatchObject({ status: 422 });
    expect(await api.get("/pipelines/film_dim")).toMatchObject({ status: 404 });
  });

  it("refuses a name that another pipeline has with 409", async () => {
    await createPipeline(api, "a");
    await createPipeline(api, "b");
    const { status, body } = await api.patch("/pipelines/b", { name: "a" });
    expect({ status, code: body.code }).toEqual({ status: 409, code: "PIPELINE_NAME_TAKEN" });
    expect(await api.get("/pipelines/b")).toMatchObject({ status: 200, body: { config_version: 1 } });
  });

  it("R2.5 while it runs, changes the safe fields and refuses the others, naming them", async () => {
    const id = await createPipeline(api, "film_dim");
    await claim(api, id);
    const safe = { batch_size: 7, description: "d", schedule_interval: "15m", enabled: false };
    expect(await api.patch(`/pipelines/${id}`, safe)).toMatchObject({ status: 200, body: safe });
    const before = await rowOf(api, id);
    const { status, body } = await api.patch(`/pipelines/${id}`, { batch_size: 8, mode: "full", target_key: ["x"] });
    expect({ status, code: body.code }).toEqual({ status: 409, code: "FIELD_LOCKED_WHILE_RUNNING" });
    expect(body).toMatchObject({ pipeline_status: "RUNNING", errors: [{ pointer: "/target_key" }] });
    expect(body.detail).toBe("film_dim is RUNNING: target_key can change only when it is IDLE, PAUSED or FAILED.");
    expect(await rowOf(api, id)).toEqual(before);
  });
});

describe("deleting a pipeline", () => {
  it("answers 204 without a body, and then there is none", async () => {
    const id = await createPipeline(api, "film_dim");
    await runTo(api, id, { kind: "succeeded" });
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
    const id = await createPipeline(api, "film_dim");
    await claim(api, id);
    expect(await api.delete("/pipelines/film_dim")).toMatchObject({
      status: 409,
      body: { code: "STATUS_CONFLICT", pipeline_status: "RUNNING" },
    });
  });
});
