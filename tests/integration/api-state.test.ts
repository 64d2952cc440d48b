import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { claim, createPipeline, errorsOf, expectProblem, runTo } from "../support/api-client.ts";
import { type ApiWithRunner, startApiWithRunner } from "../support/api-with-runner.ts";

let api: ApiWithRunner;
beforeAll(async () => {
  api = await startApiWithRunner();
  await api.database.query(`
    CREATE TABLE content.film (id int PRIMARY KEY, title text, modified timestamptz NOT NULL);
    INSERT INTO content.film SELECT n, 'film ' || n, timestamptz '2024-01-01 00:00:00+00' + n * interval '1 day'
      FROM generate_series(1, 100) n;
    ANALYZE content.film`);
  await api.startRunner();
});
beforeEach(() => api.database.forgetPipelines());
afterAll(() => api.stop());

const INCREMENTAL = {
  source_query: "SELECT id, title, modified FROM content.film",
  mode: "incremental",
  incremental_key: "modified",
  incremental_id_key: "id",
};

let made = 0;
const create = (config: object = {}): Promise<string> => {
  made += 1;
  return api.create(`film_${made}`, { ...INCREMENTAL, ...config });
};

/** Runs it, and returns the run. */
async function run(id: string) {
  const { run_request } = (await api.post(`/pipelines/${id}/run`)).body;
  const { body } = await api.get(`/pipelines/${id}/status?wait=30s&run_request=${run_request}`);
  expect(body.over).toBe(true);
  return body.last_run;
}

const stateOf = async (id: string) => (await api.get(`/pipelines/${id}/state`)).body;

describe("moving the position by hand", () => {
  it("asks for a confirmation that says what will happen, and until then changes nothing", async () => {
    const id = await create();
    await run(id);
    const before = await stateOf(id);
    expect(before.last_processed_value).not.toBeNull();
    const name = (await api.get(`/pipelines/${id}`)).body.name;
    const position = { last_processed_value: "2024-02-01 00:00:00+00" };
    const reset = await api.post(`/api/v1/pipelines/${id}/state/reset`);
    const keep = await api.post(`/pipelines/${id}/state/keep?confirm=false`);
    const set = await api.post(`/pipelines/${id}/state/set`, position);
    for (const answer of [reset, keep, set]) {
      expectProblem(answer, "CONFIRMATION_NEEDED");
      expect(answer.body.detail).toContain(`"${before.last_processed_value}"`);
      expect(answer.body.detail).toContain(`analytics.${name}`);
    }
    expect(reset.body.detail).toMatch(/its next run reads everything/);
    expect(keep.body.detail).toMatch(/rows before it are not read again/);
    expect(set.body.detail).toMatch(/reads the rows whose modified is "2024-02-01 00:00:00\+00" or later/);
    expect(await stateOf(id)).toEqual(before);
    expectProblem(await api.post(`/pipelines/${id}/state/reset?confirm=yes`), "INVALID_REQUEST");
  });

  it("reset reads everything again, and the target keeps its data until then", async () => {
    const id = await create();
    expect(await run(id)).toMatchObject({ rows_read: 100, estimated_rows: 100 });
    expect((await run(id)).rows_read).toBeLessThan(100);
    const reset = await api.post(`/pipelines/${id}/state/reset?confirm=true`);
    expect(reset).toMatchObject({ status: 200, body: { last_processed_value: null, last_processed_id: null } });
    const { target_table } = (await api.get(`/pipelines/${id}`)).body;
    expect(await api.database.query(`SELECT count(*)::int AS n FROM ${target_table}`)).toEqual([{ n: 100 }]);
    expect(await run(id)).toMatchObject({ status: "SUCCESS", rows_read: 100, rows_unchanged: 100 });
  });

  it.each([
    ["from a value on, that value included", { last_processed_value: "2024-04-01 00:00:00+00" }, 10],
    ["behind one row, with the id", { last_processed_value: "2024-04-01 00:00:00+00", last_processed_id: "91" }, 9],
    ["in any way PostgreSQL reads the value", { last_processed_value: "April 1 2024 00:00 UTC" }, 10],
  ])("set lets the next run begin %s, also before the first run", async (_, position, rows) => {
    const id = await create();
    const set = await api.post(`/pipelines/${id}/state/set?confirm=true`, position);
    expect(set).toMatchObject({ status: 200, body: { last_processed_id: null, ...position, scan_position: null } });
    const result = await run(id);
    expect(result).toMatchObject({ status: "SUCCESS", rows_read: rows, rows_written: rows });
    // The planner knows roughly what lies behind the position.
    expect(result.estimated_rows).toBeLessThan(30);
  });

  it.each([
    ["value", { last_processed_value: "yesterdayish" }, /"modified", which is of type timestamp with time zone/],
    ["id", { last_processed_value: "2024-04-01", last_processed_id: "99999999999" }, /"id", which is of type integer/],
  ])("a %s that does not fit its column fails the run at once, and says so", async (_, position, expected) => {
    const id = await create();
    await api.post(`/pipelines/${id}/state/set?confirm=true`, position);
    const failed = await run(id);
    expect(failed).toMatchObject({ status: "FAILED", attempt: 1, error_code: "STATE_UNUSABLE", rows_read: 0 });
    expect(failed.error).toMatch(expected);
    expect(failed.error).not.toContain(position.last_processed_value);
    await api.post(`/pipelines/${id}/state/reset?confirm=true`);
    expect(await run(id)).toMatchObject({ status: "SUCCESS", rows_read: 100 });
  });

  it("set refuses full pipelines, ids without a column, and bodies that are no position", async () => {
    const full = await create({ mode: "full", incremental_key: null, incremental_id_key: null, target_key: ["id"] });
    const path = (id: string) => `/pipelines/${id}/state/set?confirm=true`;
    expectProblem(await api.post(path(full), { last_processed_value: "1" }), "STATE_NOT_SETTABLE");
    const withoutId = await create({ incremental_id_key: null });
    const refused = await api.post(path(withoutId), { last_processed_value: "1", last_processed_id: "2" });
    expectProblem(refused, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(refused))).toEqual(["/last_processed_id"]);
    for (const body of [{}, { last_processed_value: 1 }, { last_processed_value: null }, { value: "1" }]) {
      expectProblem(await api.post(path(withoutId), body), "INVALID_REQUEST");
    }
    expect(await stateOf(withoutId)).toMatchObject({ last_processed_value: null });
  });

  it("is refused while a runner holds the pipeline, before any confirmation is asked for", async () => {
    await api.stopRunner();
    const id = await createPipeline(api, "held", INCREMENTAL);
    await claim(api, id);
    for (const query of ["", "?confirm=true"]) {
      const position = { last_processed_value: "2024-01-01" };
      for (const answer of [
        await api.post(`/pipelines/${id}/state/reset${query}`),
        await api.post(`/pipelines/${id}/state/keep${query}`),
        await api.post(`/pipelines/${id}/state/set${query}`, position),
      ]) {
        expect(answer).toMatchObject({ status: 409, body: { code: "STATUS_CONFLICT", pipeline_status: "RUNNING" } });
      }
    }
    await api.startRunner();
  });

  it("a set position belongs to the present query: a later change of it is noticed", async () => {
    await api.stopRunner();
    const id = await createPipeline(api, "changed", { ...INCREMENTAL, create_target: true });
    await runTo(api, id, { kind: "paused" });
    await api.post(`/pipelines/${id}/state/set?confirm=true`, { last_processed_value: "2024-04-01" });
    await api.patch(`/pipelines/${id}`, { source_query: "SELECT id, modified FROM content.film" });
    await api.startRunner();
    expect(await run(id)).toMatchObject({ status: "FAILED", error_code: "STATE_OF_OTHER_CONFIG" });
  });
});
