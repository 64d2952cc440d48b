import { readFile, writeFile } from "node:fs/promises";
import Fastify from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ACCESS } from "../../src/control-plane/access-table.ts";
import type { Api } from "../../src/control-plane/api.ts";
import { requireAccessOfEveryRoute } from "../../src/control-plane/auth/route-access.ts";
import { eventsOf } from "../../src/control-plane/changes/event-feed.ts";
import { mayActAs, ROLES, type Role } from "../../src/domain/access.ts";
import type { PipelineId } from "../../src/domain/pipeline.ts";
import type { Claim, RunOutcome } from "../../src/meta-store/ports/run-queue.ts";
import { bearer, expectProblem, pipelineBody, startTestApi, type TestApi } from "../support/api-client.ts";
import { LOGIN_REQUIRED, makeBadKeys, makeKeys, sendAs } from "../support/callers.ts";

const DOCUMENT = new URL("../../docs/ACCESS.md", import.meta.url);
const TABLE = /(?<=<!-- table -->\n).*(?=<!-- end of the table -->)/s;
const CALLERS = ["nobody", ...ROLES] as const;
type Caller = (typeof CALLERS)[number];

interface Operation {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
}

let api: TestApi;
let keys: Record<Role, string>;
let operations: Operation[];
// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document as it comes.
let documentation: any;

beforeAll(async () => {
  api = await startTestApi(LOGIN_REQUIRED);
  keys = await makeKeys(api);
  documentation = (await api.get("/openapi.json")).body;
  operations = Object.entries<Record<string, { operationId: string }>>(documentation.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({ operationId, method: method.toUpperCase(), path })),
    )
    .sort((a, b) => (a.operationId < b.operationId ? -1 : 1));
});
afterAll(() => api.stop());

/** Nothing of that name exists and there is no body, so whoever is let in changes nothing. */
const NOTHING = "nothing_of_that_name";

/** Asks for what does not exist, so that whoever is let in changes nothing; a stream of events would never end. */
const ask = ({ method, path }: Operation, headers: Record<string, string>) =>
  api.send(path.replace(/\{\w+\}/g, NOTHING).replace(/\/events$/, `/events?pipeline=${NOTHING}`), { method, headers });

function tableOf(isAllowed: (operation: Operation, caller: Caller) => boolean): string {
  const head = ["operation", "request", ...CALLERS];
  const rows = operations.map((operation) => [
    operation.operationId,
    `\`${operation.method} ${operation.path.replace("/api/v1", "")}\``,
    ...CALLERS.map((caller) => (isAllowed(operation, caller) ? "yes" : "–")),
  ]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

describe("docs/ACCESS.md", () => {
  it("has the table of src/control-plane/access-table.ts (UPDATE_DOCS=1 rewrites it)", async () => {
    const table = tableOf(({ operationId }, caller) => {
      const needed = ACCESS[operationId] ?? "admin";
      return needed === "anyone" || (caller !== "nobody" && mayActAs(caller, needed));
    });
    const text = await readFile(DOCUMENT, "utf8");
    if (process.env["UPDATE_DOCS"] === "1") await writeFile(DOCUMENT, text.replace(TABLE, table));
    expect(TABLE.exec(await readFile(DOCUMENT, "utf8"))?.[0]).toBe(table);
  });

  it("R8.5 says what the API does, for every operation and every role", async () => {
    const letIn = new Map<string, boolean>();
    for (const operation of operations) {
      for (const caller of CALLERS) {
        const answer = await ask(operation, caller === "nobody" ? {} : bearer(keys[caller]));
        if (answer.status === 401) expectProblem(answer, "UNAUTHENTICATED");
        if (answer.status === 403) expectProblem(answer, "ROLE_TOO_LOW");
        letIn.set(`${operation.operationId} ${caller}`, ![401, 403].includes(answer.status));
        expect(answer.status).toBeLessThan(500);
      }
    }
    const observed = tableOf(({ operationId }, caller) => letIn.get(`${operationId} ${caller}`) === true);
    expect(observed).toBe(TABLE.exec(await readFile(DOCUMENT, "utf8"))?.[0]);
  });

  it("names no operation that does not exist", () => {
    expect(Object.keys(ACCESS).sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
  });
});

describe("R8.5 whoever is not let in", () => {
  it("gets 401 with a bad, an expired or a revoked key, wherever a login is needed, also without the prefix", async () => {
    const bad = await makeBadKeys(api);
    const closed = operations.filter(({ operationId }) => ACCESS[operationId] !== "anyone");
    expect(closed.length).toBeGreaterThan(10);
    for (const operation of closed) {
      for (const path of [operation.path, operation.path.replace("/api/v1", "")]) {
        for (const key of Object.values(bad)) {
          const answer = await ask({ ...operation, path }, bearer(key));
          expectProblem(answer, "UNAUTHENTICATED");
          expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="vitrina", error="invalid_token"');
        }
        const answer = await ask({ ...operation, path }, {});
        expectProblem(answer, "UNAUTHENTICATED");
        expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="vitrina"');
      }
    }
    const details = await Promise.all(
      Object.values(bad).map(async (key) => (await api.send("/keys", { headers: bearer(key) })).body.detail),
    );
    expect(details).toEqual(["The key is not known.", "The key has expired.", "The key was revoked."]);
  });

  it.each([
    ["nothing behind Bearer", "Bearer "],
    ["another scheme", "Basic YWRtaW46YWRtaW4="],
    ["no scheme", "vitrina_000000000000_x"],
    ["a key of nobody", `Bearer vitrina_000000000000_${"A".repeat(43)}`],
    ["a key that is too short", "Bearer vitrina_000000000000_A"],
    ["two tokens", "Bearer aaaa bbbb"],
    ["SQL", "Bearer vitrina_' OR 1=1 --_x"],
  ])("gets 401 with %s", async (_, authorization) => {
    expectProblem(await api.send("/pipelines", { headers: { authorization } }), "UNAUTHENTICATED");
  });

  it("is told the role that is needed and the one that is held", async () => {
    const answer = await api.send("/pipelines", { method: "POST", headers: bearer(keys.operator) });
    expectProblem(answer, "ROLE_TOO_LOW");
    expect(answer.body).toMatchObject({
      detail: "This needs the role editor; you are operator.",
      role_needed: "editor",
      role_held: "operator",
    });
  });

  it("gets the documentation, the probes, 404 and 405 like everybody", async () => {
    for (const path of ["/docs", "/openapi.json", "/health", "/health/ready"]) {
      expect(await api.get(path)).toMatchObject({ status: 200 });
    }
    expectProblem(await api.get("/nothing"), "NOT_FOUND");
    expectProblem(await api.send("/pipelines", { method: "PUT" }), "METHOD_NOT_ALLOWED");
  });
});

describe("the documentation", () => {
  it("says for each operation which role it needs and how to log in", () => {
    expect(documentation.components.securitySchemes).toMatchObject({ bearer: { type: "http", scheme: "bearer" } });
    for (const { path, method, operationId } of operations) {
      const operation = documentation.paths[path][method.toLowerCase()];
      const needed = ACCESS[operationId];
      const problems = ["401", "403", "429"].filter((status) => status in operation.responses);
      if (needed === "anyone") {
        expect(operation.security).toEqual([]);
        expect(problems).toEqual(["429"]);
      } else {
        expect(operation).toMatchObject({ security: [{ bearer: [] }], "x-required-role": needed });
        expect(operation.description).toContain(`Needs the role ${needed}.`);
        expect(problems).toEqual(["401", "403", "429"]);
      }
    }
  });
});

describe("what a code task says of its failure", () => {
  const WORDS = "no such country: Ruritania";
  const RUNNER = "00000000-0000-0000-0000-000000000001";

  /** A run of its own that ended with such an error; the ids of the pipeline and the run. */
  async function fail(name: string, outcome: RunOutcome): Promise<readonly [string, string]> {
    const body = pipelineBody(name);
    const created = await sendAs(api, keys.admin, "POST", "/pipelines", body);
    expect(created.status, created.text).toBe(201);
    await api.store.requests.run(created.body.id, "api");
    const claim = (await api.store.queue.claimNext(RUNNER, 60_000)) as Claim;
    const fields = JSON.stringify(outcome);
    await api.store.runLogs.append([
      { runId: claim.runId, at: new Date(), level: "error", message: "run failed", fields },
    ]);
    await api.store.queue.finishRun(claim, outcome);
    return [created.body.id, claim.runId];
  }

  it("is for those who may read rows, and a viewer reads which task it was", async () => {
    const error = `Task shelf failed: Error: ${WORDS}\n    at shelf.ts:3:1 Correct the task's code.`;
    const [failed, run] = await fail("task_failed", { kind: "failed", mayPass: false, code: "TASK_FAILED", error });
    const waiting = { kind: "waiting", code: "TASK_RETRY_LATER", waitMs: 600_000, isNew: true } as const;
    const later = `Task shelf asks to be tried again later: ${WORDS}`;
    const [waits, tried] = await fail("task_waits", { ...waiting, error: later });
    const looks = [failed, waits].flatMap((id) => [
      `/pipelines/${id}`,
      `/pipelines/${id}/status`,
      `/pipelines/${id}/runs`,
    ]);
    const paths = ["/pipelines", "/runs", `/pipelines/${failed}/runs/${run}`, ...looks];
    const logs = [`/pipelines/${failed}/runs/${run}/logs`, `/pipelines/${waits}/runs/${tried}/logs`];
    let read = 0;
    for (const path of [...paths, ...logs]) {
      const seen = await sendAs(api, keys.viewer, "GET", path);
      expect(seen.status, seen.text).toBe(200);
      expect(seen.text, path).not.toContain("Ruritania");
      if ((await sendAs(api, keys.operator, "GET", path)).text.includes("Ruritania")) read += 1;
    }
    // Only the pipeline that failed does not tell of its runs.
    expect(read).toBe(paths.length + logs.length - 1);
    expect((await sendAs(api, keys.viewer, "GET", `/pipelines/${failed}/runs/${run}`)).body).toMatchObject({
      error_code: "TASK_FAILED",
      error: "Task shelf failed. What the task itself says may quote rows: an operator can read it.",
    });
    const told = JSON.stringify(
      eventsOf({ pipelines: [], runs: [await api.store.runs.get(failed as PipelineId, run)] } as never),
    );
    expect(told).toContain("Task shelf failed. ");
    expect(told).not.toContain("Ruritania");
  });
});

describe("a route that is not in the access table", () => {
  it("cannot be registered, so the API does not start", () => {
    const server = Fastify();
    requireAccessOfEveryRoute(server as unknown as Api);
    const handler = (): string => "done";
    expect(() => server.post("/x", { schema: { operationId: "dropEverything" } as object }, handler)).toThrow(
      "POST /x (dropEverything) is not in the access table.",
    );
    expect(() => server.get("/docsx", handler)).toThrow("GET /docsx (no operationId) is not in the access table.");
  });
});
