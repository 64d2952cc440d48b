import { randomUUID } from "node:crypto";
import { afterAll, inject } from "vitest";
import { openElasticsearchSink } from "../../src/connectors/elasticsearch/sink.ts";
import type { IndexTarget } from "../../src/connectors/elasticsearch/target.ts";
import type { Target } from "../../src/domain/target.ts";
import { describeSink } from "../conformance/sink-contract.ts";
import { searchView } from "../support/search-bench.ts";

const search = searchView(inject("searchUrl"));
const indexes: string[] = [];
afterAll(async () => {
  for (const index of indexes) await search.drop(index);
});

const nameOf = (target: Target): string => (target as IndexTarget).index;

describeSink("elasticsearch", () => ({
  sink: openElasticsearchSink({
    urls: [search.url],
    apiKey: undefined,
    user: undefined,
    password: undefined,
    caFile: undefined,
    requestTimeoutMs: 30_000,
    patienceMs: 30_000,
  }),
  newTarget() {
    const index = `c_${randomUUID().slice(0, 8)}`;
    indexes.push(index);
    return { kind: "elasticsearch", index };
  },
  async titles(target) {
    if ((await search.indexOf(nameOf(target))) === undefined) return undefined;
    const found = [...(await search.documents(nameOf(target))).values()] as { id: number; title: string | null }[];
    return new Map(found.sort((a, b) => a.id - b.id).map(({ id, title }) => [String(id), title]));
  },
  async columns(target) {
    const { body } = await search.ask("GET", `/${nameOf(target)}/_mapping`);
    // biome-ignore lint/suspicious/noExplicitAny: the answer of the cluster.
    return Object.keys((Object.values(body)[0] as any).mappings.properties).sort();
  },
}));
