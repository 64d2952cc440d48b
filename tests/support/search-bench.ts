import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench } from "./pipelines.ts";

/** What a test wants to know of the cluster, asked by plain HTTP and without the code that is tested. */
export interface SearchView {
  readonly url: string;
  ask(method: string, path: string, body?: unknown): Promise<SearchAnswer>;
  /** Every document behind a name, by id, with its source as the exact text that was sent. */
  documents(name: string): Promise<Map<string, unknown>>;
  count(name: string): Promise<number>;
  /** Which indexes exist behind a name, with their aliases. */
  family(name: string): Promise<Record<string, string[]>>;
  /** The index that an alias leads to. */
  indexOf(alias: string): Promise<string | undefined>;
  drop(name: string): Promise<void>;
}

interface SearchAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer.
  readonly body: any;
}

export function searchView(url: string): SearchView {
  const ask = async (method: string, path: string, body?: unknown): Promise<SearchAnswer> => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  const family = async (name: string): Promise<Record<string, string[]>> => {
    const { body } = await ask("GET", `/${name},${name}__*?ignore_unavailable=true`);
    const entries = Object.entries(body as Record<string, { aliases: object }>);
    return Object.fromEntries(entries.map(([index, { aliases }]) => [index, Object.keys(aliases).sort()]));
  };
  return {
    url,
    ask,
    family,
    async documents(name) {
      await ask("POST", `/${name}/_refresh`);
      const found = new Map<string, unknown>();
      const read = ({ body }: SearchAnswer): string | undefined => {
        for (const { _id, _source } of body.hits.hits) found.set(_id, _source);
        return body.hits.hits.length > 0 ? body._scroll_id : undefined;
      };
      let scroll = read(await ask("POST", `/${name}/_search?scroll=1m`, { size: 5000, sort: ["_doc"] }));
      while (scroll !== undefined)
        scroll = read(await ask("POST", "/_search/scroll", { scroll: "1m", scroll_id: scroll }));
      return found;
    },
    async count(name) {
      await ask("POST", `/${name}/_refresh`);
      return (await ask("GET", `/${name}/_count`)).body.count;
    },
    async indexOf(alias) {
      const { status, body } = await ask("GET", `/_alias/${alias}`);
      return status === 200 ? Object.keys(body)[0] : undefined;
    },
    async drop(name) {
      for (const index of Object.keys(await family(name))) await ask("DELETE", `/${index}`);
    },
  };
}

/** A bench whose runner knows the search server. */
export interface SearchBench extends Bench {
  readonly search: SearchView;
  /** A pipeline with an index of its own. */
  createIndex(config: object): Promise<Pipeline & { index: string }>;
}

export async function openSearchBench(settings: Record<string, string> = {}): Promise<SearchBench> {
  const url = inject("searchUrl");
  const bench = await openBench({ ELASTICSEARCH_URL: url, TARGET_INDEXES: "t_*", ...settings });
  const search = searchView(url);
  const indexes: string[] = [];
  return {
    ...bench,
    search,
    async createIndex(config) {
      const index = `t_${randomUUID().slice(0, 8)}`;
      indexes.push(index);
      return { ...(await bench.create({ target_table: `es:${index}`, ...config })), index };
    },
    async close() {
      await bench.close();
      for (const index of indexes) await search.drop(index);
    },
  };
}
