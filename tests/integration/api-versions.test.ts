import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  claim,
  createPipeline,
  expectProblem,
  JSON_TYPE,
  pipelineBody,
  rowOf,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(() => api.database.forgetPipelines());
afterAll(() => api.stop());

/** Version 1 as created, then 2 (batch_size), 3 (description and key). */
async function threeVersions(): Promise<string> {
  const id = await createPipeline(api, "film_dim");
  await api.patch(`/pipelines/${id}`, { batch_size: 5 });
  await api.patch(`/pipelines/${id}`, { description: "new", target_key: ["id", "x"] });
  return id;
}

describe("update-config", () => {
  it("R3.2 does the same as PATCH: the change, the checks, the lock and the version", async () => {
    const id = await createPipeline(api, "film_dim");
    const changed = await api.post("/api/v1/pipelines/film_dim/update-config", { batch_size: 9 });
    expect(changed).toMatchObject({ status: 200, body: { id, batch_size: 9, config_version: 2 } });
    expectProblem(await api.post(`/pipelines/${id}/update-config`, {}), "INVALID_REQUEST");
    await claim(api, id);
    expectProblem(await api.post(`/pipelines/${id}/update-config`, { mode: "x" }), "INVALID_REQUEST");
    expectProblem(
      await api.post(`/pipelines/${id}/update-config`, { target_key: ["z"] }),
      "FIELD_LOCKED_WHILE_RUNNING",
    );
  });
});

describe("versions", () => {
  it("R2.5 lists them newest first, in pages, with author and what changed", async () => {
    const id = await threeVersions();
    const first = (await api.get(`/api/v1/pipelines/${id}/versions?limit=2`)).body;
    const second = (await api.get(`/pipelines/film_dim/versions?limit=2&after=${first.next}`)).body;
    expect(second.next).toBeNull();
    const listed = [...first.items, ...second.items].map(({ created_at, ...rest }) => rest);
    expect(listed).toEqual([
      { version: 3, author: "local", changed_fields: ["description", "target_key"] },
      { version: 2, author: "local", changed_fields: ["batch_size"] },
      { version: 1, author: "local", changed_fields: [] },
    ]);
    for (const after of ["0", "-1", "x", "1e3", "99999999999"]) {
      const refused = await api.get(`/pipelines/${id}/versions?after=${after}`);
      expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: "/after" }] } });
    }
  });

  it("R2.5 reads a version whole, and compares any two", async () => {
    const id = await threeVersions();
    const { body: second } = await api.get(`/pipelines/${id}/versions/2`);
    expect(second).toMatchObject({ version: 2, config: { name: "film_dim", batch_size: 5, description: "" } });
    const before = await api.get(`/pipelines/${id}/versions/3/diff`);
    expect(before.body).toEqual({
      version: 3,
      with: 2,
      changes: [
        { field: "description", before: "", after: "new" },
        { field: "target_key", before: ["id"], after: ["id", "x"] },
      ],
    });
    const backwards = (await api.get(`/pipelines/${id}/versions/1/diff?with=2`)).body;
    expect(backwards.changes).toEqual([{ field: "batch_size", before: 5, after: 1000 }]);
    expect((await api.get(`/pipelines/${id}/versions/1/diff`)).body).toEqual({ version: 1, with: 1, changes: [] });
    for (const path of ["versions/4", "versions/3/diff?with=9"]) {
      expectProblem(await api.get(`/pipelines/${id}/${path}`), "VERSION_NOT_FOUND");
    }
    for (const version of ["0", "x", "1.5", "99999999999"]) {
      expectProblem(await api.get(`/pipelines/${id}/versions/${version}`), "NOT_FOUND");
    }
  });

  it("reads and compares a version of an earlier release, which knew fewer fields", async () => {
    const id = await threeVersions();
    await api.database.query(
      "UPDATE etl.etl_pipeline_versions SET config = config - 'max_rejects' WHERE pipeline_id = $1 AND version = 1",
      [id],
    );
    const { changes } = (await api.get(`/pipelines/${id}/versions/2/diff`)).body;
    expect(changes.map(({ field }: { field: string }) => field)).toEqual(["batch_size"]);
    expect(await api.post(`/pipelines/${id}/versions/1/restore`)).toMatchObject({
      status: 200,
      body: { max_rejects: 100, batch_size: 1000 },
    });
  });
});

describe("restoring a version", () => {
  it("R2.5 makes it the present configuration, as a new version; once more changes nothing", async () => {
    const id = await threeVersions();
    const restored = await api.post(`/api/v1/pipelines/${id}/versions/1/restore`);
    expect(restored).toMatchObject({ status: 200, body: { config_version: 4, batch_size: 1000, target_key: ["id"] } });
    expect(await api.post(`/pipelines/${id}/versions/1/restore`)).toMatchObject({ body: { config_version: 4 } });
    const { body } = await api.get(`/pipelines/${id}/versions/4/diff?with=1`);
    expect(body.changes).toEqual([]);
  });

  it("R2.5 obeys the lock while it runs, where a locked field would change", async () => {
    const id = await threeVersions();
    await claim(api, id);
    const before = await rowOf(api, id);
    const refused = await api.post(`/pipelines/${id}/versions/1/restore`);
    expectProblem(refused, "FIELD_LOCKED_WHILE_RUNNING");
    expect(refused.body.errors).toEqual([{ pointer: "/target_key", message: expect.any(String) }]);
    expect(await rowOf(api, id)).toEqual(before);
  });

  it("refuses a name that another pipeline has taken meanwhile, and a target that is not allowed any more", async () => {
    const id = await createPipeline(api, "film_dim");
    await api.patch(`/pipelines/${id}`, { name: "films" });
    await createPipeline(api, "film_dim");
    expectProblem(await api.post(`/pipelines/${id}/versions/1/restore`), "PIPELINE_NAME_TAKEN");
    await api.database.query(
      `UPDATE etl.etl_pipeline_versions SET config = config || '{"name": "films", "target_table": "secret.x"}'
        WHERE pipeline_id = $1 AND version = 1`,
      [id],
    );
    expectProblem(await api.post(`/pipelines/${id}/versions/1/restore`), "INVALID_REQUEST");
    await api.database.query(
      "UPDATE etl.etl_pipeline_versions SET config = '{}' WHERE pipeline_id = $1 AND version = 1",
      [id],
    );
    expectProblem(await api.post(`/pipelines/${id}/versions/1/restore`), "VERSION_NOT_RESTORABLE");
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { config_version: 2 } });
  });
});

describe("ETag", () => {
  const patchIf = (id: string, match: string, body: object) =>
    api.send(`/pipelines/${id}`, {
      method: "PATCH",
      body: JSON.stringify(body),
      headers: { ...JSON_TYPE, "if-match": match },
    });

  it("names the version on every answer that is a pipeline", async () => {
    const created = await api.post("/pipelines", pipelineBody("film_dim"));
    const { id } = created.body;
    expect(created.headers.get("etag")).toMatch(/^"v1-[0-9a-f]+"$/);
    expect((await api.get(`/pipelines/${id}`)).headers.get("etag")).toBe(created.headers.get("etag"));
    const patched = await api.patch(`/pipelines/${id}`, { batch_size: 2 });
    const run = await api.post(`/pipelines/${id}/run`);
    for (const { headers } of [patched, run]) expect(headers.get("etag")).toMatch(/^"v2-/);
    expect(run.headers.get("etag")).not.toBe(patched.headers.get("etag"));
  });

  it("answers 304 without a body as long as nothing changed, the status included", async () => {
    const id = await createPipeline(api, "film_dim");
    const etag = (await api.get(`/pipelines/${id}`)).headers.get("etag") ?? "";
    const again = () => api.send(`/pipelines/${id}`, { headers: { "if-none-match": `"v9-aa", W/${etag}` } });
    expect(await again()).toMatchObject({ status: 304, text: "" });
    await api.post(`/pipelines/${id}/run`);
    expect(await again()).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED" } });
  });

  it("If-Match lets a change through at that version, whatever the status did meanwhile", async () => {
    const id = await createPipeline(api, "film_dim");
    const etag = (await api.get(`/pipelines/${id}`)).headers.get("etag") ?? "";
    await api.post(`/pipelines/${id}/run`);
    expect(await patchIf(id, etag, { batch_size: 2 })).toMatchObject({ status: 200, body: { config_version: 2 } });
    expect(await patchIf(id, '"v2"', { batch_size: 3 })).toMatchObject({ status: 200, body: { config_version: 3 } });
    expect(await patchIf(id, "*", { batch_size: 4 })).toMatchObject({ status: 200, body: { config_version: 4 } });
  });

  it("If-Match refuses with 412 and the present version on every path that changes the configuration", async () => {
    const id = await threeVersions();
    const before = await rowOf(api, id);
    const stale = { "if-match": '"v2-0123456789abcdef"' };
    const body = (content: object) => ({ body: JSON.stringify(content), headers: { ...JSON_TYPE, ...stale } });
    const answers = [
      await api.send(`/pipelines/${id}`, { method: "PATCH", ...body({ batch_size: 7 }) }),
      await api.send(`/pipelines/${id}/update-config`, { method: "POST", ...body({ batch_size: 7 }) }),
      await api.send(`/pipelines/${id}/tasks`, { method: "PUT", ...body({ tasks: [] }) }),
      await api.send(`/pipelines/${id}/versions/1/restore`, { method: "POST", headers: stale }),
      await api.send(`/pipelines/${id}`, { method: "DELETE", headers: stale }),
    ];
    for (const answer of answers) {
      expectProblem(answer, "PRECONDITION_FAILED");
      expect(answer.body.config_version).toBe(3);
    }
    expect(await rowOf(api, id)).toEqual(before);
    for (const nonsense of ["v3", '"3"', '"v3", "v2"', 'W/"v3"']) {
      expectProblem(await patchIf(id, nonsense, { batch_size: 7 }), "PRECONDITION_FAILED");
    }
  });

  it("of many who change the same version at once, exactly one succeeds", async () => {
    const id = await createPipeline(api, "film_dim");
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => patchIf(id, '"v1"', { batch_size: index + 1 })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { config_version: 2 } });
  });
});
