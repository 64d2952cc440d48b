import type { Registry } from "../../src/connectors/registry.ts";
import type { Answer } from "./api-client.ts";
import { type Bench, openBench } from "./pipelines.ts";

/** An API beside a runner on one database, with a readable schema `content`. */
export interface TryOut extends Bench {
  readonly url: string;
  post(path: string, body?: unknown, init?: RequestInit): Promise<Answer>;
}

export async function openTryOut(settings: Record<string, string> = {}, registry?: Registry): Promise<TryOut> {
  const bench = await openBench(settings, registry);
  const api = await bench.startApi(undefined, true);
  return {
    ...bench,
    url: api.url,
    async post(path, body, init) {
      const content = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_TYPE };
      const response = await fetch(`${api.url}${path}`, { method: "POST", ...content, ...init });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: text === "" ? undefined : JSON.parse(text),
      };
    },
  };
}

const JSON_TYPE = { "content-type": "application/json" };
