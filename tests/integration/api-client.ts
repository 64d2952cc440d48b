import { inject } from "vitest";
import { startApi } from "../../src/main/api.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Log } from "../../src/observability/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

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
  delete(path: string): Promise<Answer>;
  /** Anything else: the body and the headers go out as they are. */
  send(path: string, init: RequestInit): Promise<Answer>;
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

export async function startTestApi(): Promise<TestApi> {
  const database = await createTestDatabase(inject("postgresUrl"));
  const logged: string[] = [];
  const api = await startApi(database.settings, database.urls, recordingLog(logged));
  const send = async (path: string, init: RequestInit): Promise<Answer> => read(await fetch(`${api.url}${path}`, init));
  const sendJson = (method: string, path: string, body?: unknown): Promise<Answer> =>
    send(path, body === undefined ? { method } : { method, body: JSON.stringify(body), headers: JSON_TYPE });
  return {
    url: api.url,
    database,
    store: database.openStore(),
    logged,
    send,
    get: (path) => sendJson("GET", path),
    post: (path, body) => sendJson("POST", path, body),
    patch: (path, body) => sendJson("PATCH", path, body),
    delete: (path) => sendJson("DELETE", path),
    async stop() {
      await api.stop();
      await database.drop();
    },
  };
}

export const JSON_TYPE = { "content-type": "application/json" };

/** The least that a pipeline needs. */
export function pipelineBody(name: string, more: object = {}): object {
  return { name, source_query: "SELECT 1 AS id", target_table: `analytics.${name}`, target_key: ["id"], ...more };
}

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
