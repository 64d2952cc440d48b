import { VitrinaError } from "../../../domain/error-catalogue.ts";
import { faultPoint } from "../../../observability/fault-points.ts";
import { refusal } from "../cluster.ts";
import { createIndex } from "../create-index.ts";
import { SEARCH_ERRORS } from "../errors.ts";
import { type FamilyIndex, readFamily, refreshAndCount, writeAlias } from "../index-family.ts";
import { tidyFamily } from "../tidy-family.ts";
import { takeWriteAlias } from "../write-alias.ts";
import { type IndexLoad, indexOfRun, type LoadParts, markOf } from "./load.ts";

/** Each batch goes straight into the index that is searched: for incremental loads. */
export function upsertLoad(parts: LoadParts): IndexLoad {
  const { cluster, name, request, definition, family } = parts;
  const { claim } = request;
  const { live } = family;
  if (live !== undefined) requireFitting(parts, live);
  const index = live?.index ?? indexOfRun(parts);
  return {
    name: "upsert",
    resumed: true,

    async begin() {
      await tidyFamily(cluster, name, request.options);
      if (live !== undefined) return extendMapping(parts, live);
      const aliases = [name, writeAlias(name, claim.pipelineId, claim.epoch)];
      await faultPoint("switch_ready");
      await createIndex(cluster, { index, aliases, definition, mark: markOf(parts) });
    },

    takeWriteAlias: () => takeWriteAlias(parts, index),
    count: () => undefined,
    finish: async () => ({ rows_deleted: 0 }),
    makeVisible: async () => undefined,
    async takeMark() {
      const { live: written } = await readFamily(cluster, name);
      if (written === undefined) return null;
      return { identity: written.uuid, filled: (await refreshAndCount(cluster, written.index)) > 0 };
    },
    async lossSince({ identity, filled }) {
      const { live: found } = await readFamily(cluster, name);
      if (found === undefined) return "missing";
      if (identity !== undefined && identity !== found.uuid) return "replaced";
      return filled === true && (await refreshAndCount(cluster, found.index)) === 0 ? "emptied" : undefined;
    },
    giveUp: async () => undefined,
    tidyUp: async () => undefined,
  };
}

/**
 * Versions grow with the claims of one pipeline, so two pipelines would shut each other out. Documents are found by
 * their key, so another key would duplicate them.
 */
function requireFitting({ name, key, request }: LoadParts, { mark }: FamilyIndex): void {
  if (mark === undefined) return;
  if (mark.pipeline_id !== request.claim.pipelineId) {
    throw new VitrinaError(
      SEARCH_ERRORS.INDEX_DIFFERS,
      `es:${name} was filled by another pipeline (${mark.pipeline_id}); an index is kept up to date by one pipeline only.`,
    );
  }
  if (JSON.stringify(mark.key) === JSON.stringify(key)) return;
  const [had, has] = [mark.key.join(", "), key.join(", ")];
  throw new VitrinaError(
    SEARCH_ERRORS.INDEX_DIFFERS,
    `The documents of es:${name} are identified by (${had}), not by (${has}).`,
  );
}

/** A changed mapping is applied before the first document: if the index cannot take it, the load is refused. */
async function extendMapping({ cluster, name, request, definition }: LoadParts, live: FamilyIndex): Promise<void> {
  const { properties, fingerprint } = definition;
  const missing = Object.keys(properties).filter((field) => !(field in live.properties));
  if (missing.length > 0 && !request.addColumns) {
    throw new VitrinaError("TARGET_COLUMN_MISSING", `es:${name} has no field ${missing.join(", ")}.`, {
      hint: "Set add_columns, run the pipeline once in mode full, or remove the column from the query.",
    });
  }
  const { mark } = live;
  // An index of somebody else is taken as it is: only what it lacks is added.
  const added = Object.fromEntries(missing.map((field) => [field, properties[field]]));
  if (mark === undefined ? missing.length === 0 : mark.definition === fingerprint) return;
  const body =
    mark === undefined
      ? { properties: added }
      : { properties, _meta: { vitrina: { ...mark, definition: fingerprint } } };
  const what = `change the mapping of ${live.index}`;
  const answer = await cluster.ask(what, { method: "PUT", path: `/${live.index}/_mapping`, body }, [400]);
  if (answer.status === 400) throw new VitrinaError(SEARCH_ERRORS.INDEX_DIFFERS, refusal(answer, what).message);
}
