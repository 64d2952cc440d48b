import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Cluster, reasonOf, refusal } from "./cluster.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import type { IndexDefinition } from "./index-definition.ts";
import { type IndexMark, isTaken, ONLY_INDEX } from "./index-family.ts";

interface NewIndex {
  readonly index: string;
  readonly aliases: readonly string[];
  readonly definition: IndexDefinition;
  readonly mark: IndexMark;
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** Has its aliases from the start: an index without any would belong to nobody. */
export async function createIndex(
  cluster: Cluster,
  { index, aliases, definition, mark, settings }: NewIndex,
): Promise<void> {
  const what = `create the index ${index}`;
  const body = {
    aliases: Object.fromEntries(aliases.map((alias) => [alias, ONLY_INDEX])),
    mappings: { dynamic: "strict", _meta: { vitrina: mark }, properties: definition.properties },
    settings: { ...definition.settings, ...settings },
  };
  const answer = await cluster.ask(what, { method: "PUT", path: `/${index}`, body }, [400, 500]);
  if (isTaken(answer.body)) {
    throw new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, `Could not ${what}: its alias has got another index meanwhile.`);
  }
  // The first try succeeded, although no answer came: nobody else gives an index this name.
  const exists = reasonOf(answer.body).startsWith("resource_already_exists_exception");
  if ([400, 500].includes(answer.status) && !exists) throw refusal(answer, what);
}

export async function putMark(cluster: Cluster, index: string, mark: IndexMark): Promise<void> {
  const body = { _meta: { vitrina: mark } };
  await cluster.ask(`mark the index ${index}`, { method: "PUT", path: `/${index}/_mapping`, body });
}
