import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Cluster, isYes, reasonOf, refusal } from "./cluster.ts";
import { SEARCH_ERRORS } from "./errors.ts";

/**
 * All indexes behind one name. The name itself is an alias, and so is everything that can change at once:
 *
 * - `films`: the index that is searched.
 * - `films__previous`: the one that was searched before.
 * - `films__write_<pipeline>_<epoch>`: the index that this claim writes to. A runner that takes the pipeline over
 *   replaces this alias with its own, and from then on nothing of the earlier claim arrives.
 * - `films__restored_<request>`: the index that was brought back for this request.
 */
export interface IndexFamily {
  readonly name: string;
  readonly live: FamilyIndex | undefined;
  /** An index that has the name itself, where the alias should be. */
  readonly plain: FamilyIndex | undefined;
  readonly previous: FamilyIndex | undefined;
  /** Being loaded: written to, and not yet searched. */
  readonly loading: readonly FamilyIndex[];
  /** Ours, and no longer of use. */
  readonly orphans: readonly FamilyIndex[];
}

export interface FamilyIndex {
  readonly index: string;
  readonly uuid: string | undefined;
  readonly aliases: readonly string[];
  readonly properties: Readonly<Record<string, unknown>>;
  /** Undefined where the index was made by somebody else. */
  readonly mark: IndexMark | undefined;
}

/** What is kept in the mapping of an index that was made here. */
export interface IndexMark {
  readonly target: string;
  readonly pipeline_id: string;
  readonly run_id: string;
  readonly key: readonly string[];
  /** A hash of mapping and settings as they were requested. */
  readonly definition: string;
  /** Set when the load was complete: at which batch, when, and whether an interrupted load was continued. */
  readonly loaded?: { readonly batch_no: number; readonly at: string; readonly in_parts?: boolean };
}

export const previousAlias = (name: string): string => `${name}__previous`;
export const restoredAlias = (name: string, restoreId: string): string => `${name}__restored_${restoreId}`;

const writePrefix = (name: string, pipelineId: string): string => `${name}__write_${pipelineId}_`;

export const writeAlias = (name: string, pipelineId: string, epoch: number): string =>
  writePrefix(name, pipelineId) + epoch;

/** The aliases by which claims of a pipeline write to the index, with their epochs. */
export function writersOf(
  { aliases }: FamilyIndex,
  name: string,
  pipelineId: string,
): { alias: string; epoch: number }[] {
  const prefix = writePrefix(name, pipelineId);
  return aliases
    .filter((alias) => alias.startsWith(prefix))
    .map((alias) => ({ alias, epoch: Number(alias.slice(prefix.length)) }));
}

export async function readFamily(cluster: Cluster, name: string): Promise<IndexFamily> {
  const path = `/${name},${name}__*?ignore_unavailable=true&allow_no_indices=true`;
  const { body } = await cluster.ask(`look at ${name}`, { method: "GET", path });
  const found = Object.entries((body ?? {}) as Record<string, RawIndex>).map(parseIndex);
  const searched = found.filter(({ aliases }) => aliases.includes(name));
  if (searched.length > 1) {
    const names = searched.map(({ index }) => index).join(", ");
    throw new VitrinaError(
      SEARCH_ERRORS.INDEX_DIFFERS,
      `${name} is an alias of several indexes (${names}); it must be one.`,
      {
        hint: "Leave the alias to one of the indexes, or choose another name.",
      },
    );
  }
  const live = searched[0];
  const ours = found.filter((one) => one !== live && one.mark?.target === name);
  const previous = ours.find(({ aliases }) => aliases.includes(previousAlias(name)));
  const rest = ours.filter((one) => one !== previous);
  const isWritten = ({ aliases }: FamilyIndex): boolean => aliases.some((alias) => alias.startsWith(`${name}__write_`));
  return {
    name,
    live,
    plain: found.find(({ index }) => index === name),
    previous,
    loading: rest.filter(isWritten),
    orphans: rest.filter((one) => !isWritten(one)),
  };
}

/** An index that somebody else made is not written to, or deleted, unless the pipeline asks for it. */
export function requireAlias({ plain, name }: IndexFamily): void {
  if (plain === undefined) return;
  throw new VitrinaError(SEARCH_ERRORS.INDEX_NOT_AN_ALIAS, `${name} is an index of its own, and not an alias of one.`);
}

interface RawIndex {
  readonly settings?: { readonly index?: { readonly uuid?: string } };
  readonly aliases?: Readonly<Record<string, unknown>>;
  readonly mappings?: {
    readonly _meta?: { readonly vitrina?: IndexMark };
    readonly properties?: Readonly<Record<string, unknown>>;
  };
}

function parseIndex([index, { aliases = {}, mappings = {}, settings }]: [string, RawIndex]): FamilyIndex {
  return {
    index,
    uuid: settings?.index?.uuid,
    aliases: Object.keys(aliases),
    properties: mappings.properties ?? {},
    mark: mappings._meta?.vitrina,
  };
}

/** With an alias: the cluster refuses a second index for it, however late the request of a lost runner arrives. */
export const ONLY_INDEX = { is_write_index: true } as const;

export const isTaken = (body: unknown): boolean => reasonOf(body).includes("has more than one write index");

export type AliasAction =
  | { readonly add: { readonly index: string; readonly alias: string } & typeof ONLY_INDEX }
  | { readonly remove: { readonly index: string; readonly alias: string; readonly must_exist: true } }
  | { readonly remove_index: { readonly index: string } };

export const addAlias = (index: string, alias: string): AliasAction => ({ add: { index, alias, ...ONLY_INDEX } });
/** Refused, together with all other actions of the request, if the index no longer has the alias. */
export const removeAlias = (index: string, alias: string): AliasAction => ({
  remove: { index, alias, must_exist: true },
});

/** Makes room for an alias of the same name, in the same step. */
export const removeIndex = (index: string): AliasAction => ({ remove_index: { index } });

/** All at once or nothing. False when something had changed since it was read. */
export async function changeAliases(cluster: Cluster, what: string, actions: readonly AliasAction[]): Promise<boolean> {
  const answer = await cluster.ask(what, { method: "POST", path: "/_aliases", body: { actions } }, [400, 404, 500]);
  // An index that was to go has gone, and its name is an alias by now.
  const isAlias = reasonOf(answer.body).includes("matches an alias");
  if ([400, 500].includes(answer.status) && !isAlias && !isTaken(answer.body)) throw refusal(answer, what);
  return isYes(answer.status);
}

/** Succeeds if the index is already gone. */
export async function dropIndex(cluster: Cluster, index: string): Promise<void> {
  await cluster.ask(`delete the index ${index}`, { method: "DELETE", path: `/${index}` }, [404]);
}

/** Added to the path of a search: all shards answer, or the search fails. Otherwise what they hold would seem to be gone. */
export const ALL_SHARDS = "allow_partial_search_results=false";

/** What is counted of an index: everything, if nothing else is said. */
interface Counting {
  readonly ids?: readonly string[];
  readonly limit?: number;
}

/** The cluster keeps the limit in 32 bits. */
const MOST_COUNTED = 2 ** 31 - 1;

/** By a search, since `_count` leaves out the shards that are away. */
export async function countDocuments(cluster: Cluster, index: string, { ids, limit }: Counting = {}): Promise<number> {
  const track_total_hits = limit === undefined || limit > MOST_COUNTED ? true : limit;
  const query = ids === undefined ? {} : { query: { ids: { values: ids } } };
  const { body } = await cluster.ask(`count ${index}`, {
    method: "POST",
    path: `/${index}/_search?${ALL_SHARDS}`,
    body: { size: 0, track_total_hits, ...query },
  });
  return (body as { hits: { total: { value: number } } }).hits.total.value;
}

/** A document is counted only after a refresh, and one that was deleted until then. */
export async function refreshAndCount(cluster: Cluster, index: string, counting: Counting = {}): Promise<number> {
  await cluster.ask(`refresh ${index}`, { method: "POST", path: `/${index}/_refresh` });
  return countDocuments(cluster, index, counting);
}
