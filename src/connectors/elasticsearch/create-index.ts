import { type Cluster, reasonOf, refusal } from "./cluster.ts";
import type { IndexDefinition } from "./index-definition.ts";
import type { IndexMark } from "./index-family.ts";

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
    aliases: Object.fromEntries(aliases.map((alias) => [alias, {}])),
    mappings: { dynamic: "strict", _meta: { vitrina: mark }, properties: definition.properties },
    settings: { ...definition.settings, ...settings },
  };
  const answer = await cluster.ask(what, { method: "PUT", path: `/${index}`, body }, [400]);
  // The first try succeeded, although no answer came: nobody else gives an index this name.
  const exists = reasonOf(answer.body).startsWith("resource_already_exists_exception");
  if (answer.status === 400 && !exists) throw refusal(answer, what);
}

export async function putMark(cluster: Cluster, index: string, mark: IndexMark): Promise<void> {
  const body = { _meta: { vitrina: mark } };
  await cluster.ask(`mark the index ${index}`, { method: "PUT", path: `/${index}/_mapping`, body });
}
