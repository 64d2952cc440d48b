import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Role } from "../../src/domain/access.ts";
import {
  type Answer,
  bearer,
  errorsOf,
  expectProblem,
  JSON_TYPE,
  pipelineBody,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";
import { LOGIN_REQUIRED, makeKeys, sendAs } from "../support/callers.ts";

let api: TestApi;
let keys: Record<Role, string>;
beforeAll(async () => {
  api = await startTestApi(LOGIN_REQUIRED);
  keys = await makeKeys(api);
});
afterAll(() => api.stop());

const send = (method: string, path: string, key: string, body?: object): Promise<Answer> =>
  sendAs(api, key, method, path, body);
const createKey = (body: object): Promise<Answer> => send("POST", "/api/v1/keys", keys.admin, body);

describe("R8.5 a key", () => {
  it("is shown once, works at once, and only its hash is kept", async () => {
    const { status, headers, body } = await createKey({ name: "ci", role: "editor", expires_in: "90d" });
    expect({ status, cache: headers.get("cache-control") }).toEqual({ status: 201, cache: "no-store" });
    expect(body).toMatchObject({ name: "ci", role: "editor", created_by: "key:admin", last_used_at: null });
    expect(body.key).toMatch(new RegExp(`^vitrina_${body.id}_[\\w-]{43}$`));
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBeCloseTo(90 * 86_400_000, -4);

    expect(await send("GET", "/pipelines", body.key)).toMatchObject({ status: 200 });
    const secret = body.key.split("_").slice(2).join("_");
    const listed = await send("GET", "/keys", keys.admin);
    expect(listed.text).not.toContain(secret);
    expect(listed.body.items[0]).toMatchObject({ id: body.id, last_used_at: expect.any(String) });
    expect(Object.keys(listed.body.items[0])).not.toContain("secret_sha256");
    const rows = await api.database.query("SELECT k::text AS row FROM etl.api_keys k");
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(JSON.stringify(rows)).not.toContain(Buffer.from(secret).toString("hex"));
  });

  it("is made once by a request that is sent twice, and shown only the first time", async () => {
    const init = {
      method: "POST",
      headers: { ...bearer(keys.admin), ...JSON_TYPE, "idempotency-key": "one-key" },
      body: JSON.stringify({ name: "twice", role: "viewer" }),
    };
    const [first, second] = [await api.send("/api/v1/keys", init), await api.send("/api/v1/keys", init)];
    expect(first).toMatchObject({ status: 201, body: { name: "twice", key: expect.stringMatching(/^vitrina_/) } });
    expect(second).toMatchObject({ status: 201, body: { ...first.body, key: null } });
    expect(await api.database.query("SELECT id FROM etl.api_keys WHERE name = 'twice'")).toHaveLength(1);
    const kept = await api.database.query("SELECT body FROM etl.etl_answers WHERE key = 'one-key'");
    expect(JSON.stringify(kept)).not.toContain(first.body.key);
  });

  it("is refused from the next request after it was revoked, by whomever, and revoking twice is once", async () => {
    const { body } = await createKey({ name: "gone", role: "viewer" });
    expect(await send("GET", "/pipelines", body.key)).toMatchObject({ status: 200 });
    expect(await send("DELETE", `/keys/${body.id}`, keys.admin)).toMatchObject({ status: 204, text: "" });
    expectProblem(await send("GET", "/pipelines", body.key), "UNAUTHENTICATED");
    const revokedAt = async () => api.database.query("SELECT revoked_at FROM etl.api_keys WHERE id = $1", [body.id]);
    const before = await revokedAt();
    expect(await send("DELETE", `/keys/${body.id}`, keys.admin)).toMatchObject({ status: 204 });
    expect(await revokedAt()).toEqual(before);
    expectProblem(await send("DELETE", "/keys/000000000000", keys.admin), "KEY_NOT_FOUND");
  });

  it("expires by the clock of the database", async () => {
    const { body } = await createKey({ name: "short", role: "viewer", expires_at: "2999-01-01T00:00:00+03:00" });
    expect(body.expires_at).toBe("2998-12-31T21:00:00.000Z");
    await api.database.query(
      "UPDATE etl.api_keys SET expires_at = created_at + interval '1 microsecond' WHERE id = $1",
      [body.id],
    );
    expectProblem(await send("GET", "/pipelines", body.key), "UNAUTHENTICATED");
  });

  it("notes its last use at most once a minute", async () => {
    const { body } = await createKey({ name: "busy", role: "viewer" });
    const lastUse = async () =>
      (await api.database.query("SELECT last_used_at::text AS at FROM etl.api_keys WHERE id = $1", [body.id]))[0];
    await send("GET", "/pipelines", body.key);
    const first = await lastUse();
    expect(first).toEqual({ at: expect.any(String) });
    await send("GET", "/pipelines", body.key);
    expect(await lastUse()).toEqual(first);
    await api.database.query(
      "UPDATE etl.api_keys SET last_used_at = last_used_at - interval '61 seconds' WHERE id = $1",
      [body.id],
    );
    await send("GET", "/pipelines", body.key);
    expect(((await lastUse())?.["at"] as string) >= (first?.["at"] as string)).toBe(true);
  });

  it("is listed newest first, in pages", async () => {
    const ids: string[] = [];
    for (let after = ""; ; ) {
      const { body } = await send("GET", `/keys?limit=3${after}`, keys.admin);
      ids.push(...body.items.map(({ id }: { id: string }) => id));
      if (body.next === null) break;
      after = `&after=${body.next}`;
    }
    const rows = await api.database.query("SELECT id FROM etl.api_keys ORDER BY created_at DESC, id DESC");
    expect(ids).toEqual(rows.map(({ id }) => id));
  });

  it.each([
    [{ role: "admin" }, ["/name"]],
    [{ name: "x", role: "root" }, ["/role"]],
    [{ name: "a\nb", role: "admin" }, ["/name"]],
    [{ name: "x", role: "admin", expires_in: "soon" }, ["/expires_in"]],
    [{ name: "x", role: "admin", expires_in: "0d" }, ["/expires_in"]],
    [{ name: "x", role: "admin", expires_in: "999999d" }, ["/expires_in"]],
    [{ name: "x", role: "admin", expires_at: "2000-01-01T00:00:00Z" }, ["/expires_at"]],
    [{ name: "x", role: "admin", expires_at: "tomorrow" }, ["/expires_at"]],
    [{ name: "x", role: "admin", expires_in: "1d", expires_at: "2999-01-01T00:00:00Z" }, ["/expires_at"]],
    [
      { name: "x", role: "admin", id: "000000000000", secret_sha256: "x", revoked_at: null },
      ["/id", "/secret_sha256", "/revoked_at"],
    ],
  ])("answers 422 to %j", async (body, pointers) => {
    const answer = await createKey(body);
    expectProblem(answer, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(answer))).toEqual(pointers);
  });
});

describe("whose change it is", () => {
  it("is kept with the version of the pipeline", async () => {
    const { body } = await send("POST", "/pipelines", keys.editor, pipelineBody("owned"));
    await send("PATCH", `/pipelines/${body.id}`, keys.admin, { batch_size: 5 });
    const versions = await api.database.query("SELECT author FROM etl.etl_pipeline_versions ORDER BY version");
    expect(versions).toEqual([{ author: "key:editor" }, { author: "key:admin" }]);
  });

  it.each(["status", "lease_epoch", "lease_owner", "id", "created_by", "config_version", "created_at"])(
    "cannot be forged: %s is not accepted in a change",
    async (field) => {
      const { body } = await send("POST", "/pipelines", keys.editor, pipelineBody(`mass_${field}`));
      const row = () => api.database.query("SELECT p::text AS row FROM etl.etl_pipelines p WHERE id = $1", [body.id]);
      const before = await row();
      const answer = await send("PATCH", `/pipelines/${body.id}`, keys.admin, { batch_size: 7, [field]: "1" });
      expectProblem(answer, "INVALID_REQUEST");
      expect(Object.keys(errorsOf(answer))).toEqual([`/${field}`]);
      expect(await row()).toEqual(before);
      const created = await send("POST", "/pipelines", keys.admin, pipelineBody(`new_${field}`, { [field]: "1" }));
      expectProblem(created, "INVALID_REQUEST");
    },
  );
});
