import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Chaos, openChaos } from "./chaos.ts";
import { type FollowChaos, type FollowKills, openFollowChaos } from "./chaos-follow.ts";
import { BATCH, createSource, ROWS } from "./chaos-kinds.ts";
import { type SearchView, searchView } from "./search-bench.ts";
import type { VitrinaProcess } from "./vitrina-process.ts";

/** Where a runner that writes an index can be killed: whenever something is about to become durable, or just did. */
const IN_EVERY_LOAD = [
  "claimed:1",
  "prepared:1",
  "batch_read:4",
  "batch_transformed:4",
  "batch_staged:4",
  "bulk_ready:4",
  "bulk_answered:4",
  "batch_applied:4",
  "checkpoint_recorded:4",
  "data_committed:4",
  "batch_committed:4",
  "load_read:1",
];
export const SEARCH_KILLS = {
  full: [
    ...IN_EVERY_LOAD,
    "load_applied:1",
    "switch_ready:1",
    "alias_switched:1",
    "load_committed:1",
    "before_finish:1",
  ],
  incremental: ["switch_ready:1", ...IN_EVERY_LOAD, "watermark_moved:1", "before_finish:1"],
} as const;
export type SearchMode = keyof typeof SEARCH_KILLS;

/** In mode follow. A comparison and the repair after a sweep build a new index, as a full load does. */
export const SEARCH_FOLLOW_KILLS: FollowKills = {
  round: [
    "claimed:1",
    "round_opened:1",
    "keys_found:1",
    "batch_read:1",
    "batch_transformed:2",
    "batch_staged:2",
    "bulk_ready:2",
    "bulk_answered:2",
    "batch_applied:2",
    "checkpoint_recorded:2",
    "data_committed:2",
    "chunk_committed:1",
    "chunk_committed:4",
    "position_moved:1",
    "before_finish:1",
  ],
  comparison: ["compare_noted:1", "bulk_answered:4", "switch_ready:1", "alias_switched:1", "load_committed:1"],
  sweep: ["reconcile_batch:1", "sweep_compared:1", "alias_switched:1"],
};

const QUERY = "SELECT id, code, title, modified FROM content.film";
const MORE_ROWS = 60;

export interface SearchChaos extends Chaos {
  readonly search: SearchView;
  runner(fault?: string, more?: Record<string, string>): VitrinaProcess;
  createIndex(mode: SearchMode | "follow", more?: object): Promise<Pipeline & { index: string }>;
}

/** What runners need to write the indexes that a test has named here; in the end they are dropped. */
function openIndexes(url: string) {
  const search = searchView(url);
  const indexes: string[] = [];
  return {
    search,
    environment: { ELASTICSEARCH_URL: url, TARGET_INDEXES: "k_*", ELASTICSEARCH_PATIENCE_SECONDS: "120" },
    indexes,
    name(): string {
      const index = `k_${randomUUID().slice(0, 8)}`;
      indexes.push(index);
      return index;
    },
    async drop() {
      for (const index of indexes) await search.drop(index).catch(() => undefined);
    },
  };
}

/** Real runner processes between a real PostgreSQL and a real search server. */
export async function openSearchChaos(url = inject("searchUrl")): Promise<SearchChaos> {
  const chaos = await openChaos("stream");
  await createSource(chaos);
  const { search, environment, name, drop } = openIndexes(url);
  return {
    ...chaos,
    search,
    runner: (fault, more = {}) => chaos.runner(fault, { ...environment, ...more }),
    async createIndex(mode, more = {}) {
      const index = name();
      const cursor = mode === "incremental" && { incremental_key: "modified", incremental_id_key: "id" };
      const config = { name: index, source_query: QUERY, target_table: `es:${index}`, target_key: ["id"] };
      const pipeline = await chaos.create({
        ...config,
        mode,
        ...cursor,
        create_target: true,
        batch_size: BATCH,
        ...more,
      });
      return { ...pipeline, index };
    },
    async close() {
      await chaos.close();
      await drop();
    },
  };
}

const indexOf = ({ target_table }: Pipeline): string => target_table.replace("es:", "");

export interface SearchFollowChaos extends FollowChaos {
  readonly search: SearchView;
}

/** Of indexes that follow. */
export async function openSearchFollowChaos(url = inject("searchUrl")): Promise<SearchFollowChaos> {
  const chaos = await openFollowChaos("stream");
  const { search, environment, indexes, name: newIndex, drop } = openIndexes(url);
  return {
    ...chaos,
    search,
    runner: (fault, more = {}) => chaos.runner(fault, { ...environment, ...more }),
    createMart: (name) => chaos.createMart(name, { target_table: `es:${newIndex()}` }),
    rowsOf: async (mart) => [...(await search.documents(indexOf(mart))).values()],
    // Not those that the changes before a sweep concern.
    async tamperWith(mart) {
      const index = indexOf(mart);
      const { body } = await search.ask("POST", `/${index}/_update/14?refresh=true`, { doc: { title: "tampered" } });
      const deleted = await search.ask("DELETE", `/${index}/_doc/15?refresh=true`);
      if (body.result !== "updated" || deleted.body.result !== "deleted") throw new Error("Nothing was tampered with.");
    },
    /** Indexes that no name leads to. */
    async leftovers() {
      const families = await Promise.all(indexes.map((index) => search.family(index)));
      const all = families.flatMap((family) => Object.entries(family));
      return all.filter(([, names]) => names.every((one) => one.includes("__write_")));
    },
    async close() {
      await chaos.close();
      await drop();
    },
  };
}

/** Changes rows, adds some at the end and some in between; `modified` moves with every change. */
export async function changeSource({ query }: Pick<Chaos, "query">): Promise<void> {
  await query(`UPDATE content.film SET title = title || '!', modified = clock_timestamp() WHERE id % 10 = 0;
    INSERT INTO content.film SELECT n * 2 + 1, 'more ' || n, 'more', clock_timestamp() FROM generate_series(1, ${MORE_ROWS}) n`);
}

/** Documents that differ from the query, extra documents, and rows without a document. */
export async function documentDifferences({ query, search }: SearchChaos, index: string): Promise<string[]> {
  const wanted = new Map(
    (
      await query(`SELECT id::text, json_build_object('id', id, 'code', code, 'title', title, 'modified',
       to_json(modified AT TIME ZONE 'UTC') #>> '{}' || 'Z') AS doc FROM content.film`)
    ).map(({ id, doc }) => [id as string, JSON.stringify(doc)]),
  );
  const found = await search.documents(index);
  const wrong = [...wanted].filter(([id, doc]) => JSON.stringify(found.get(id)) !== doc).map(([id]) => id);
  return [...wrong, ...[...found.keys()].filter((id) => !wanted.has(id))];
}

/** Searches through aliases continuously, and records what went wrong and what was seen. */
export interface SearchLoop {
  readonly failures: unknown[];
  /** The numbers of documents that were seen, by alias. */
  readonly totals: Map<string, Set<number>>;
  searches(): number;
  stop(): Promise<void>;
}

export function loopSearches(search: SearchView, aliases: readonly string[]): SearchLoop {
  const failures: unknown[] = [];
  const totals = new Map<string, Set<number>>(aliases.map((alias) => [alias, new Set()]));
  let searches = 0;
  let stopped = false;
  const body = { size: 1, track_total_hits: true, query: { match: { title: "film" } } };
  const loop = async (): Promise<void> => {
    while (!stopped) {
      for (const alias of aliases) {
        const answer = await search
          .ask("POST", `/${alias}/_search`, body)
          .catch((error: unknown) => ({ status: 0, body: error }));
        searches += 1;
        if (answer.status !== 200 || answer.body._shards.failed > 0) failures.push(answer.body);
        else totals.get(alias)?.add(answer.body.hits.total.value);
      }
    }
  };
  const running = loop();
  return {
    failures,
    totals,
    searches: () => searches,
    async stop() {
      stopped = true;
      await running;
    },
  };
}

export { ROWS };
