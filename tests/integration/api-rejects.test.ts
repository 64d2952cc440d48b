import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type Answer,
  claim,
  createPipeline,
  errorsOf,
  expectProblem,
  runTo,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(() => api.database.forgetPipelines());
afterAll(() => api.stop());

/** A pipeline with rejects of a run, and the ids of these, newest first. */
async function withRejects(
  name: string,
  count: number,
  more: object = {},
): Promise<{ id: string; ids: number[]; run: string }> {
  const id = await createPipeline(api, name, more);
  const { runId } = await runTo(api, id, { kind: "succeeded" });
  const rows = await api.database.query(
    `INSERT INTO etl.etl_rejects (pipeline_id, run_id, row_key, row, error_code, error)
     SELECT $1, $2, jsonb_build_object('id', n::text), jsonb_build_object('id', n::text, 'title', NULL), 'ROW_REFUSED', 'Because.'
       FROM generate_series(1, $3::int) n RETURNING id`,
    [id, runId, count],
  );
  return { id, run: runId, ids: rows.map(({ id: reject }) => Number(reject)).reverse() };
}

const idsOf = ({ body }: Answer): number[] => body.items.map((item: { id: number }) => item.id);

describe("the rejects of a pipeline", () => {
  it("are listed newest first, by pages and by run, with the row and the reason", async () => {
    const { ids, run } = await withRejects("film", 5);
    await withRejects("other", 2);
    const first = await api.get("/api/v1/pipelines/film/rejects?limit=3");
    const second = await api.get(`/pipelines/film/rejects?limit=3&after=${first.body.next}`);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(ids);
    expect(second.body.next).toBeNull();
    expect(first.body.items[0]).toEqual({
      id: ids[0],
      run_id: run,
      state: "OPEN",
      key: { id: "5" },
      row: { id: "5", title: null },
      error_code: "ROW_REFUSED",
      error: "Because.",
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(idsOf(await api.get(`/pipelines/film/rejects?run_id=${run}`))).toEqual(ids);
    expect(idsOf(await api.get(`/pipelines/film/rejects?run_id=${randomUUID()}`))).toEqual([]);
    expect(idsOf(await api.get("/pipelines/film/rejects?run_id=x"))).toEqual([]);
  });
});

describe("asking for a retry", () => {
  it("marks them and requests a run; without a body all of them", async () => {
    const { id } = await withRejects("film", 3);
    expect(await api.post("/pipelines/film/rejects/retry")).toMatchObject({
      status: 200,
      body: { retried: 3, pipeline_status: "RUN_REQUESTED" },
    });
    const { items } = (await api.get(`/pipelines/${id}/rejects`)).body;
    expect(items.map(({ state }: { state: string }) => state)).toEqual(Array(3).fill("RETRY_REQUESTED"));
  });

  it("takes ids, and only those of this pipeline; nothing to retry requests nothing", async () => {
    const { ids } = await withRejects("film", 3);
    const other = await withRejects("other", 1);
    const asked = { ids: [ids[1] as number, other.ids[0] as number] };
    expect(await api.post("/pipelines/film/rejects/retry", asked)).toMatchObject({ body: { retried: 1 } });
    expect((await api.get("/pipelines/film/rejects")).body.items.map(({ state }: { state: string }) => state)).toEqual([
      "OPEN",
      "RETRY_REQUESTED",
      "OPEN",
    ]);
    await createPipeline(api, "clean");
    expect(await api.post("/pipelines/clean/rejects/retry")).toMatchObject({
      body: { retried: 0, pipeline_status: "IDLE" },
    });
  });

  it("marks nothing where a run may not be requested", async () => {
    const { id } = await withRejects("off", 2);
    await api.patch("/pipelines/off", { enabled: false });
    expectProblem(await api.post("/pipelines/off/rejects/retry"), "PIPELINE_DISABLED");
    await api.patch("/pipelines/off", { enabled: true });
    await claim(api, id);
    await api.post("/pipelines/off/pause");
    expectProblem(await api.post("/pipelines/off/rejects/retry"), "STATUS_CONFLICT");
    expect((await api.get("/pipelines/off/rejects")).body.items).toMatchObject([{ state: "OPEN" }, { state: "OPEN" }]);
  });
});

describe("discarding", () => {
  it("forgets those named, or all, and says how many", async () => {
    const { ids } = await withRejects("film", 4);
    const other = await withRejects("other", 2);
    const asked = { ids: [ids[0] as number, other.ids[0] as number, 999_999] };
    expect(await api.post("/pipelines/film/rejects/discard", asked)).toMatchObject({ body: { discarded: 1 } });
    expect(await api.post("/pipelines/film/rejects/discard", { all: true })).toMatchObject({ body: { discarded: 3 } });
    expect(idsOf(await api.get("/pipelines/other/rejects"))).toEqual(other.ids);
  });

  it.each([{}, { all: false }, { ids: [] }, { ids: [1], all: true }, { ids: [0] }, { ids: ["1"] }])(
    "forgets nothing on a request that leaves open what is meant: %j",
    async (body) => {
      await withRejects("film", 1);
      const answer = await api.post("/pipelines/film/rejects/discard", body);
      expectProblem(answer, "INVALID_REQUEST");
      expect(Object.keys(errorsOf(answer))).not.toHaveLength(0);
      expect(idsOf(await api.get("/pipelines/film/rejects"))).toHaveLength(1);
    },
  );

  it("says that there is no such pipeline", async () => {
    expectProblem(await api.get("/pipelines/nothing/rejects"), "PIPELINE_NOT_FOUND");
    expectProblem(await api.post("/pipelines/nothing/rejects/retry"), "PIPELINE_NOT_FOUND");
    expectProblem(await api.post("/pipelines/nothing/rejects/discard", { all: true }), "PIPELINE_NOT_FOUND");
  });
});
