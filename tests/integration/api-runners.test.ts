import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claim, createPipeline, expectProblem } from "../support/api-client.ts";
import { type ApiWithRunner, startApiWithRunner } from "../support/api-with-runner.ts";
import { WITH_TASKS } from "../support/pipelines.ts";

let api: ApiWithRunner;
beforeAll(async () => {
  api = await startApiWithRunner(WITH_TASKS);
});
afterAll(() => api.stop());

const task = { name: "shout", language: "TYPESCRIPT", description: "Loud.", params: {} } as const;

const register = async (more: object = {}): Promise<string> => {
  const id = randomUUID();
  await api.store.runners.register({ id, hostname: "host", pid: 7, version: "1", ...more });
  return id;
};

const seen = (id: string, ago: string) =>
  api.database.query(
    "UPDATE etl.etl_runners SET last_seen_at = clock_timestamp() - $2::interval, started_at = clock_timestamp() - $2::interval WHERE id = $1",
    [id, ago],
  );

const runners = async (): Promise<Record<string, Record<string, unknown>>> => {
  const { items } = (await api.get("/api/v1/runners")).body;
  return Object.fromEntries(items.map((runner: { id: string }) => [runner.id, runner]));
};

describe("GET /tasks and GET /runners", () => {
  it("R3.2 a real runner publishes its tasks; when it stops they are gone", async () => {
    expect((await api.get("/api/v1/tasks")).body).toEqual({ items: [] });
    await api.startRunner();
    const [runner] = (await api.get("/runners")).body.items;
    expect(runner).toMatchObject({ alive: true, pid: process.pid, stopped_at: null, holds: [] });
    const { items } = (await api.get("/tasks")).body;
    const languages = new Set(items.map(({ language }: { language: string }) => language));
    expect(languages).toEqual(new Set(["TYPESCRIPT", "PYTHON"]));
    for (const item of items) {
      expect(item).toMatchObject({ description: expect.any(String), params: { type: "object" }, runners: [runner.id] });
    }
    await api.stopRunner();
    expect((await api.get("/tasks")).body).toEqual({ items: [] });
    expect((await runners())[runner.id]).toMatchObject({ alive: false, stopped_at: expect.stringMatching(/Z$/) });
  });

  it("tells which living runners have a task, as the youngest describes it", async () => {
    const [old, young, dead] = [
      await register({ tasks: [{ ...task, description: "Older." }] }),
      await register({ tasks: [task, { ...task, language: "PYTHON" }] }),
      await register({ tasks: [task] }),
    ];
    await seen(dead, "2 minutes");
    const { items } = (await api.get("/tasks")).body;
    expect(items).toEqual([
      { ...task, language: "PYTHON", runners: [young] },
      { ...task, runners: [young, old] },
    ]);
  });

  it("shows a silent runner as not alive, for a day; one that reports rarely is given more time", async () => {
    const [silent, rare, yesterday] = [await register(), await register({ reportEveryMs: 600_000 }), await register()];
    await seen(silent, "2 minutes");
    await seen(rare, "20 minutes");
    await seen(yesterday, "25 hours");
    const shown = await runners();
    expect(shown[silent]).toMatchObject({ alive: false });
    expect(shown[rare]).toMatchObject({ alive: true });
    expect(shown[yesterday]).toBeUndefined();
  });

  it("forgets runners after a week, when another one joins", async () => {
    const [week, day] = [await register(), await register()];
    await seen(week, "8 days");
    await seen(day, "6 days");
    await register();
    const kept = await api.database.query("SELECT id FROM etl.etl_runners WHERE id = ANY($1)", [[week, day]]);
    expect(kept).toEqual([{ id: day }]);
  });

  it("R4.2 tells which pipelines a runner holds, under which run and until when", async () => {
    const id = await createPipeline(api, "held");
    const { runId, runnerId } = await claim(api, id);
    await api.store.runners.register({ id: runnerId, hostname: "host", pid: 7, version: "1" });
    expect((await runners())[runnerId]).toMatchObject({
      hostname: "host",
      holds: [
        {
          pipeline_id: id,
          pipeline_name: "held",
          status: "RUNNING",
          run_id: runId,
          kind: "load",
          lease_expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        },
      ],
    });
  });
});

describe("the tasks of a pipeline", () => {
  const plan = [
    { order_index: 1, task_type: "SQL", body: "SELECT 1 AS id" },
    { order_index: 2, task_type: "PYTHON", body: "task_of_the_future" },
  ];
  const whole = plan.map((step) => ({ ...step, source_table: null, target_table: null }));

  it("R3.2 are read and replaced as a whole, as a version of the pipeline; unknown names may come later", async () => {
    const id = await createPipeline(api, "planned");
    expect((await api.get(`/api/v1/pipelines/${id}/tasks`)).body).toEqual({ items: [] });
    const put = await api.put("/pipelines/planned/tasks", { tasks: plan });
    expect(put).toMatchObject({ status: 200, body: { config_version: 2, tasks: whole } });
    expect((await api.get(`/pipelines/${id}/tasks`)).body).toEqual({ items: whole });
    expect(await api.put(`/pipelines/${id}/tasks`, { tasks: [] })).toMatchObject({
      body: { config_version: 3, tasks: [] },
    });
    const [changed] = (await api.get(`/pipelines/${id}/versions`)).body.items;
    expect(changed).toMatchObject({ version: 3, changed_fields: ["tasks"] });
  });

  it("R2.3 a plan that breaks the contract is refused with every problem, and nothing changes", async () => {
    const id = await createPipeline(api, "broken");
    const refused = await api.put(`/pipelines/${id}/tasks`, {
      tasks: [
        { order_index: 1, task_type: "PYTHON", body: "x" },
        { order_index: 3, task_type: "SQL", body: "SELECT 1" },
      ],
    });
    expectProblem(refused, "INVALID_REQUEST");
    expect(refused.body.errors.length).toBeGreaterThan(1);
    expectProblem(await api.put(`/pipelines/${id}/tasks`, {}), "INVALID_REQUEST");
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { config_version: 1, tasks: [] } });
  });

  it("R2.5 are locked while a runner holds the pipeline", async () => {
    const id = await createPipeline(api, "locked");
    await claim(api, id);
    expectProblem(await api.put(`/pipelines/${id}/tasks`, { tasks: plan }), "FIELD_LOCKED_WHILE_RUNNING");
  });
});
