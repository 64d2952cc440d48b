import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { SearchClient } from "./client.ts";
import { type Cluster, reasonOf } from "./cluster.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import type { Dialect } from "./field-types.ts";
import { ALL_SHARDS } from "./index-family.ts";
import { parseAroundSources } from "./raw-json.ts";

/** A hit of a search, with its document as the exact text that was written. */
interface RawHit {
  readonly id: string;
  readonly source: string;
  readonly sort: unknown;
}

/** An index as it stood at one moment, however it changes meanwhile. */
export interface PointInTime {
  /** Documents by id, those that exist. */
  byIds(ids: readonly string[]): Promise<readonly RawHit[]>;
  /** All documents, some fields of them, in any order. */
  all(fields: readonly string[]): AsyncIterable<readonly RawHit[]>;
  close(): Promise<void>;
}

const KEEP_ALIVE = "10m";
const DOCUMENTS_PER_PAGE = 2000;

/** Both products have the same feature under different names. */
const CALLS = {
  elasticsearch: {
    open: (index: string) => `/${index}/_pit?keep_alive=${KEEP_ALIVE}`,
    idOf: (body: unknown) => (body as { id: string }).id,
    close: (id: string) => ({ path: "/_pit", body: { id } }),
    order: "_shard_doc",
  },
  opensearch: {
    // Without the last part the shards that are away are left out; Elasticsearch refuses that by itself.
    open: (index: string) =>
      `/${index}/_search/point_in_time?keep_alive=${KEEP_ALIVE}&allow_partial_pit_creation=false`,
    idOf: (body: unknown) => (body as { pit_id: string }).pit_id,
    close: (id: string) => ({ path: "/_search/point_in_time", body: { pit_id: [id] } }),
    // It has no _shard_doc before version 3.3, but can sort documents by id.
    order: "_id",
  },
} as const;

export async function openPointInTime(
  client: SearchClient,
  cluster: Cluster,
  dialect: Dialect,
  index: string,
): Promise<PointInTime> {
  const calls = CALLS[dialect];
  const what = `read ${index}`;
  // Without a refresh, documents that were acknowledged but are not searchable yet would be missing.
  await cluster.ask(what, { method: "POST", path: `/${index}/_refresh` });
  const id = calls.idOf((await cluster.ask(what, { method: "POST", path: calls.open(index) })).body);

  const search = async (body: object): Promise<readonly RawHit[]> => {
    const pit = { id, keep_alive: KEEP_ALIVE };
    const request = { method: "POST", path: `/_search?${ALL_SHARDS}`, body: { ...body, pit }, asText: true } as const;
    const answer = await cluster.ask(what, request, [404]);
    if (answer.status !== 404) return readHits(answer.body as string);
    // A node that held a part of it was lost, or nothing was read for too long: only a new one helps.
    throw new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, `Could not ${what} to the end: ${reasonOf(answer.body)}.`);
  };
  return {
    async byIds(ids) {
      const found: RawHit[] = [];
      for (let from = 0; from < ids.length; from += DOCUMENTS_PER_PAGE) {
        const values = ids.slice(from, from + DOCUMENTS_PER_PAGE);
        found.push(
          ...(await search({ size: DOCUMENTS_PER_PAGE, track_total_hits: false, query: { ids: { values } } })),
        );
      }
      return found;
    },
    async *all(fields) {
      let after: unknown;
      for (;;) {
        const position = after === undefined ? {} : { search_after: after };
        const order = { sort: [{ [calls.order]: "asc" }], track_total_hits: false };
        const hits = await search({ size: DOCUMENTS_PER_PAGE, _source: fields, ...order, ...position });
        if (hits.length === 0) return;
        yield hits;
        after = hits.at(-1)?.sort;
      }
    },
    async close() {
      // It expires by itself; there is no need to wait for a cluster that is down.
      const request = { method: "DELETE", ...calls.close(id) } as const;
      await client.send(request).catch(() => undefined);
    },
  };
}

function readHits(answer: string): RawHit[] {
  const { parsed, sources } = parseAroundSources(answer);
  const { hits } = (parsed as { hits: { hits: { _id: string; _source?: number; sort?: unknown }[] } }).hits;
  return hits.map(({ _id, _source = -1, sort }) => ({ id: _id, source: sources[_source] ?? "{}", sort }));
}
