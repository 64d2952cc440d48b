import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Role } from "../../src/domain/access.ts";
import { type Answer, claim, expectProblem, pipelineBody, startTestApi, type TestApi } from "../support/api-client.ts";
import { LOGIN_REQUIRED, makeKeys, sendAs } from "../support/callers.ts";
import { until } from "../support/until.ts";

let api: TestApi;
let keys: Record<Role, string>;
beforeEach(async () => {
  api = await startTestApi(LOGIN_REQUIRED);
  keys = await makeKeys(api);
});
afterEach(() => api.stop());

const send = (method: string, path: string, key: string | undefined, body?: unknown): Promise<Answer> =>
  sendAs(api, key, method, path, body);

const entries = (): Promise<Record<string, unknown>[]> => api.database.query("SELECT * FROM etl.audit_log ORDER BY id");

/** What changed nothing is written after its answer. */
const untilEntries = (count: number) =>
  until(`${count} entries`, async () => {
    const found = await entries();
    return found.length >= count && found;
  });

describe("R8.5 the audit log", () => {
  it("has every change, with who, what, and the versions", async () => {
    const { body: made } = await send("POST", "/api/v1/pipelines", keys.editor, pipelineBody("film"));
    await send("PATCH", "/pipelines/film", keys.editor, { batch_size: 7 });
    await send("POST", `/pipelines/${made.id}/run`, keys.operator);
    await api.store.queue.claimNext("00000000-0000-4000-8000-000000000000", 60_000).then(async (claimed) => {
      await send("POST", "/pipelines/film/pause", keys.operator);
      if (claimed) await api.store.queue.finishRun(claimed, { kind: "paused" });
    });
    await send("POST", "/pipelines/film/cancel", keys.operator);
    await send("POST", "/pipelines/film/state/reset?confirm=true", keys.admin);
    await send("POST", "/pipelines/film/state/keep?confirm=true", keys.admin);
    await send("DELETE", "/pipelines/film", keys.editor);
    const { body: key } = await send("POST", "/keys", keys.admin, { name: "ci", role: "viewer" });
    await send("DELETE", `/keys/${key.id}`, keys.admin);
    // These only look.
    await send("GET", "/pipelines", keys.viewer);
    await send("GET", "/keys", keys.admin);

    const film = { object: made.id, object_name: "film", outcome: "done" };
    const [keyId] = await api.database.query("SELECT id FROM etl.api_keys WHERE name = 'editor'");
    const found = await entries();
    expect(found).toMatchObject([
      {
        ...film,
        actor: "key:editor",
        role: "editor",
        key_id: keyId?.["id"],
        ip: "127.0.0.1",
        action: "createPipeline",
        http_status: 201,
        request_id: expect.stringMatching(/^[\da-f-]{36}$/),
        details: { version_before: null, version_after: 1 },
      },
      { ...film, action: "updatePipeline", http_status: 200, details: { version_before: 1, version_after: 2 } },
      { ...film, action: "runPipeline", actor: "key:operator", role: "operator" },
      { ...film, action: "pausePipeline" },
      { ...film, action: "cancelPipeline", role: "operator" },
      { ...film, action: "resetPipelineState", actor: "key:admin" },
      { ...film, action: "keepPipelineState" },
      { ...film, action: "deletePipeline", http_status: 204 },
      { action: "createKey", object: key.id, object_name: "ci", outcome: "done", details: { role: "viewer" } },
      { action: "revokeKey", object: key.id, object_name: "ci", outcome: "done" },
    ]);
    expect(found).toHaveLength(10);
    expect(JSON.stringify(found)).not.toContain(key.key);
  });

  it("has what was refused and what was denied, with the reason", async () => {
    await send("POST", "/pipelines", keys.editor, pipelineBody("film"));
    expectProblem(await send("POST", "/pipelines", keys.editor, pipelineBody("film")), "PIPELINE_NAME_TAKEN");
    expectProblem(await send("PATCH", "/pipelines/film", keys.editor, { batch_size: 0 }), "INVALID_REQUEST");
    expectProblem(await send("DELETE", "/pipelines/nope", keys.admin), "PIPELINE_NOT_FOUND");
    expectProblem(await send("POST", "/pipelines/film/run", keys.viewer), "ROLE_TOO_LOW");
    expectProblem(await send("GET", "/audit", keys.editor), "ROLE_TOO_LOW");
    expectProblem(await send("POST", "/pipelines/film/run", undefined), "UNAUTHENTICATED");
    expectProblem(await send("GET", "/pipelines", "nonsense"), "UNAUTHENTICATED");
    // No denial, and nothing was to be changed.
    expectProblem(await send("GET", "/pipelines/nope", keys.viewer), "PIPELINE_NOT_FOUND");
    const found = await untilEntries(8);
    const short = found.map(({ actor, action, object, outcome, http_status, details }) =>
      [outcome, actor, action, object, http_status, (details as { code?: string }).code].join(" "),
    );
    expect(short.slice(1).sort()).toEqual(
      [
        "refused key:editor createPipeline  409 PIPELINE_NAME_TAKEN",
        "refused key:editor updatePipeline film 422 INVALID_REQUEST",
        "refused key:admin deletePipeline nope 404 PIPELINE_NOT_FOUND",
        "denied key:viewer runPipeline film 403 ROLE_TOO_LOW",
        "denied key:editor listAudit  403 ROLE_TOO_LOW",
        "denied unknown runPipeline film 401 UNAUTHENTICATED",
        "denied unknown listPipelines  401 UNAUTHENTICATED",
      ].sort(),
    );
  });

  it("keeps no change without its entry: when the entry cannot be written, nothing changes", async () => {
    const { body: made } = await send("POST", "/pipelines", keys.editor, pipelineBody("film"));
    await api.database.query("REVOKE INSERT ON etl.audit_log FROM vitrina_meta");
    const row = () => api.database.query("SELECT p::text AS row FROM etl.etl_pipelines p");
    const before = await row();
    for (const [method, path, body] of [
      ["POST", "/pipelines/film/run", undefined],
      ["PATCH", "/pipelines/film", { batch_size: 9 }],
      ["DELETE", "/pipelines/film", undefined],
      ["POST", "/pipelines", pipelineBody("other")],
      ["POST", "/keys", { name: "x", role: "admin" }],
    ] as const) {
      expectProblem(await send(method, path, keys.admin, body), "INTERNAL");
    }
    expect(await row()).toEqual(before);
    expect(await api.database.query("SELECT FROM etl.api_keys WHERE name = 'x'")).toEqual([]);
    // Looking needs no entry.
    expect(await send("GET", `/pipelines/${made.id}`, keys.viewer)).toMatchObject({ status: 200 });
    await api.database.query("GRANT INSERT ON etl.audit_log TO vitrina_meta");
  });

  it("cannot be changed by the role of the API, only added to", async () => {
    await send("POST", "/pipelines", keys.editor, pipelineBody("film"));
    const client = new pg.Client({ connectionString: api.database.urls.meta });
    await client.connect();
    for (const sql of [
      "UPDATE etl.audit_log SET actor = 'somebody'",
      "DELETE FROM etl.audit_log",
      "TRUNCATE etl.audit_log",
      "DELETE FROM etl.api_keys",
      "UPDATE etl.api_keys SET role = 'admin'",
      "INSERT INTO etl.audit_log (id, actor, action, outcome) VALUES (1, 'a', 'b', 'done')",
    ]) {
      await expect(client.query(sql)).rejects.toMatchObject({ code: expect.stringMatching(/^(42501|428C9)$/) });
    }
    await client.end();
    expect(await entries()).toHaveLength(1);
  });

  it("is not written for what runners do", async () => {
    await send("POST", "/pipelines", keys.editor, pipelineBody("film"));
    await send("POST", "/pipelines/film/run", keys.operator);
    const before = await entries();
    const claimed = await api.store.queue.claimNext("00000000-0000-4000-8000-000000000000", 60_000);
    if (claimed === undefined) throw new Error("nothing was claimed");
    await api.store.queue.finishRun(claimed, { kind: "succeeded" });
    expect(await entries()).toEqual(before);
  });

  it("tells strangers apart from requests at the same time", async () => {
    await send("POST", "/pipelines", keys.admin, pipelineBody("film"));
    const roles = ["operator", "editor", "admin"] as const;
    const asked = Array.from({ length: 30 }, (_, n) => roles[n % 3] as Role);
    const answers = await Promise.all(asked.map((role) => send("POST", "/pipelines/film/run", keys[role])));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const counted = await api.database.query(
      "SELECT actor, count(*)::int AS n, count(DISTINCT request_id)::int AS requests FROM etl.audit_log WHERE action = 'runPipeline' GROUP BY 1 ORDER BY 1",
    );
    expect(counted).toEqual([
      { actor: "key:admin", n: 10, requests: 10 },
      { actor: "key:editor", n: 10, requests: 10 },
      { actor: "key:operator", n: 10, requests: 10 },
    ]);
  });

  it("is not filled by somebody who knocks all day: the rest is counted", async () => {
    const knocks = 250;
    for (let n = 0; n < knocks; n++) expectProblem(await send("GET", "/pipelines", undefined), "UNAUTHENTICATED");
    expectProblem(await send("GET", "/keys", keys.viewer), "ROLE_TOO_LOW");
    await until("the known caller's denial is written", async () =>
      (await entries()).some(({ actor }) => actor === "key:viewer"),
    );
    expect((await entries()).length).toBe(101);
    // The rest is told at the end of the minute, or of the API.
    await api.stopServer();
    expect((await entries()).at(-1)).toMatchObject({
      action: "manyAttempts",
      outcome: "denied",
      details: { attempts: 150, by: "stranger" },
    });
  });
});

describe("GET /audit", () => {
  it("lists newest first, in pages, and filters", async () => {
    const { body: made } = await send("POST", "/pipelines", keys.editor, pipelineBody("film"));
    for (let n = 1; n <= 5; n++) await send("PATCH", "/pipelines/film", keys.admin, { batch_size: n });
    await send("POST", "/pipelines", keys.editor, pipelineBody("other"));
    const read = async (query: string) => (await send("GET", `/api/v1/audit?${query}`, keys.admin)).body;
    const ids: string[] = [];
    for (let after = ""; ; ) {
      const page = await read(`limit=2${after}`);
      ids.push(...page.items.map(({ id }: { id: string }) => id));
      if (page.next === null) break;
      after = `&after=${page.next}`;
    }
    expect(ids).toEqual((await entries()).map(({ id }) => id).reverse());
    expect(ids).toHaveLength(7);
    const count = async (query: string): Promise<number> => (await read(query)).items.length;
    expect(await count(`object=${made.id}`)).toBe(6);
    expect(await count("object=film")).toBe(6);
    expect(await count("actor=key:editor")).toBe(2);
    expect(await count("action=updatePipeline&actor=key:admin")).toBe(5);
    expect(await count("actor=nobody")).toBe(0);
    expectProblem(await send("GET", "/audit?after=x", keys.admin), "INVALID_REQUEST");
  });

  it("works without a login, where the person at this machine is named local", async () => {
    const open = await startTestApi();
    await open.post("/pipelines", pipelineBody("film"));
    const id = (await open.get("/pipelines/film")).body.id;
    await claim(open, id);
    const { body } = await open.get("/audit");
    await open.stop();
    expect(body.items).toMatchObject([
      { action: "runPipeline", actor: "local", role: "admin", key_id: null },
      { action: "createPipeline", actor: "local" },
    ]);
  });
});
