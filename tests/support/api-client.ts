import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { ERROR_CATALOGUE } from "../../src/domain/error-catalogue.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Claim, RunOutcome } from "../../src/meta-store/ports/run-queue.ts";
import type { Log } from "../../src/observability/log.ts";
import type { TestDatabase } from "./database.ts";
import { openStand } from "./stand.ts";

/** A real API on a database of its own, asked by real HTTP. */
export interface TestApi {
  readonly url: string;
  readonly database: TestDatabase;
  readonly store: MetaStore;
  /** What the API logged, as JSON lines with the error's message. */
  readonly logged: string[];
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  put(path: string, body: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** Anything else: the body and the headers go out as they are. */
  send(path: string, init: RequestInit): Promise<Answer>;
  /** On the same database. */
  startRunner(): Promise<void>;
  stopRunner(): Promise<void>;
  /** Stops the API alone, so that its database can still be looked at. */
  stopServer(): Promise<void>;
  stop(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; `undefined` when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer.
  readonly body: any;
}

/** With API_AUTH=required in the settings, pass a key with `bearer` in the headers of each request. */
export async function startTestApi(settings: Record<string, string> = {}): Promise<TestApi> {
  const stand = await openStand({ settings });
  const logged: string[] = [];
  const api = await stand.startApi(recordingLog(logged));
  const send = async (path: string, init: RequestInit): Promise<Answer> => read(await fetch(`${api.url}${path}`, init));
  const sendJson = (method: string, path: string, body?: unknown): Promise<Answer> =>
    send(path, body === undefined ? { method } : { method, body: JSON.stringify(body), headers: JSON_TYPE });
  return {
    url: api.url,
    database: stand.database,
    store: stand.store,
    logged,
    send,
    get: (path) => sendJson("GET", path),
    post: (path, body) => sendJson("POST", path, body),
    patch: (path, body) => sendJson("PATCH", path, body),
    put: (path, body) => sendJson("PUT", path, body),
    delete: (path) => sendJson("DELETE", path),
    startRunner: stand.startRunner,
    stopRunner: stand.stopRunner,
    stopServer: api.stop,
    stop: stand.close,
  };
}

export const LEASE_MS = 60_000;
export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
export const JSON_TYPE = { "content-type": "application/json" };

/** The least that a pipeline needs. */
export function pipelineBody(name: string, more: object = {}): object {
  return { name, source_query: "SELECT 1 AS id", target_table: `analytics.${name}`, target_key: ["id"], ...more };
}

export async function createPipeline(api: TestApi, name: string, more: object = {}): Promise<string> {
  const { status, body } = await api.post("/api/v1/pipelines", pipelineBody(name, more));
  expect(status, JSON.stringify(body)).toBe(201);
  return body.id;
}

/** As a runner would take it. */
export async function claim(api: TestApi, id: string): Promise<Claim> {
  expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({ status: 200 });
  return claimRequested(api, id);
}

/** What was asked of it before. */
export async function claimRequested(api: TestApi, id: string): Promise<Claim> {
  const claimed = await api.store.queue.claimNext(randomUUID(), LEASE_MS);
  if (claimed?.pipeline.id !== id) throw new Error("the pipeline was not claimed");
  return claimed;
}

export async function runTo(api: TestApi, id: string, outcome: RunOutcome): Promise<Claim> {
  const claimed = await claim(api, id);
  if (outcome.kind === "paused") await api.post(`/pipelines/${id}/pause`);
  await api.store.queue.finishRun(claimed, outcome);
  return claimed;
}

/** The stored row, to prove that a refused request changed nothing. */
export function rowOf(api: TestApi, id: string): Promise<unknown> {
  return api.database.query("SELECT p::text AS row FROM etl.etl_pipelines p WHERE id = $1", [id]);
}

/** A problem is complete, agrees with its catalogue entry, and reveals no internals. */
export function expectProblem(answer: Answer, code: keyof typeof ERROR_CATALOGUE): void {
  const { status, title } = ERROR_CATALOGUE[code];
  expect(answer.status, answer.text).toBe(status);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.body).toMatchObject({
    type: `urn:vitrina:error:${code.toLowerCase().replaceAll("_", "-")}`,
    title,
    status,
    detail: expect.stringMatching(/^\S.*\.$/s),
    instance: expect.stringMatching(/^\/[^?]*$/),
    code,
    hint: expect.stringMatching(/^\S.*\.$/),
  });
  expect(answer.text).not.toMatch(/node_modules|\.[jt]s:\d|SQLSTATE|FST_ERR|received |expected (?:int|string|number)/);
}

/** The messages by their pointers. */
export const errorsOf = ({ body }: Answer): Record<string, string> =>
  Object.fromEntries(body.errors.map(({ pointer, message }: Record<string, string>) => [pointer, message]));

async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = /[/+]json\b/.test(response.headers.get("content-type") ?? "");
  const body = isJson && text !== "" ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, body };
}

function recordingLog(lines: string[]): Log {
  const record = (fields: object, message: string): void => {
    const { err } = fields as { err?: unknown };
    lines.push(JSON.stringify({ ...fields, message, ...(err instanceof Error && { err: err.message }) }));
  };
  return { debug: () => undefined, info: record, warn: record, error: record };
}
