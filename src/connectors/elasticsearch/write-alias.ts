import { VitrinaError } from "../../domain/error-catalogue.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import { addAlias, changeAliases, readFamily, removeAlias, writeAlias, writersOf } from "./index-family.ts";
import type { LoadParts } from "./loads/load.ts";

const MOST_TRIES_TO_TAKE = 5;

/**
 * Takes away the right to write to an index from every earlier claim of the pipeline. The claim writes through an alias
 * of its own, which the next claim removes: a request of a runner that lost its lease then has nowhere to go.
 */
export async function takeWriteAlias(
  { cluster, name, request: { claim, requireLease } }: Pick<LoadParts, "cluster" | "name" | "request">,
  index: string,
): Promise<string> {
  const { pipelineId, epoch } = claim;
  const own = writeAlias(name, pipelineId, epoch);
  for (let tries = 0; tries < MOST_TRIES_TO_TAKE; tries++) {
    const { live, loading } = await readFamily(cluster, name);
    const found = [...(live === undefined ? [] : [live]), ...loading].find((one) => one.index === index);
    if (found === undefined) break;
    const writers = writersOf(found, name, pipelineId);
    if (writers.some((writer) => writer.epoch > epoch)) {
      await requireLease();
      throw new VitrinaError("TARGET_AHEAD", `es:${name} was written under a later claim than this one (${epoch}).`);
    }
    const earlier = writers.filter(({ alias }) => alias !== own);
    if (earlier.length === 0 && writers.length > 0) return own;
    const actions = [...earlier.map(({ alias }) => removeAlias(index, alias)), addAlias(index, own)];
    if (await changeAliases(cluster, `take over the index ${index}`, actions)) return own;
  }
  throw new VitrinaError(
    SEARCH_ERRORS.SEARCH_BUSY,
    `The index ${index} was deleted or changed by somebody else at the same time.`,
  );
}
