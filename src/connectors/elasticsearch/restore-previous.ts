import { VitrinaError } from "../../domain/error-catalogue.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { RestoreRequest } from "../sink.ts";
import type { SearchClient } from "./client.ts";
import type { Cluster } from "./cluster.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import { impatientCluster } from "./impatient-cluster.ts";
import {
  addAlias,
  changeAliases,
  previousAlias,
  readFamily,
  removeAlias,
  requireAlias,
  restoredAlias,
} from "./index-family.ts";

/** Swaps the index that is searched with the previous one, in one step. */
export async function restorePrevious(
  client: SearchClient,
  cluster: Cluster,
  name: string,
  { restoreId, lost, underLease }: RestoreRequest,
): Promise<void> {
  const family = await readFamily(cluster, name);
  requireAlias(family);
  const { live, previous } = family;
  const done = restoredAlias(name, restoreId);
  // Already done, by a runner that could not report it.
  if (live?.aliases.includes(done)) return;
  if (live === undefined || previous === undefined) {
    throw new VitrinaError(
      SEARCH_ERRORS.NO_PREVIOUS_INDEX,
      `There is no index from before the last load of es:${name}.`,
    );
  }
  const marks = [live, previous].flatMap(({ index, aliases }) =>
    aliases.filter((alias) => alias.startsWith(restoredAlias(name, ""))).map((alias) => removeAlias(index, alias)),
  );
  const actions = [
    removeAlias(live.index, name),
    removeAlias(previous.index, previousAlias(name)),
    ...marks,
    addAlias(live.index, previousAlias(name)),
    addAlias(previous.index, name),
    addAlias(previous.index, done),
  ];
  await underLease(async () => {
    const impatient = impatientCluster(client, lost);
    await faultPoint("switch_ready");
    const changed = await changeAliases(impatient, `bring back ${previous.index}`, actions);
    await faultPoint("alias_switched");
    if (changed || (await readFamily(impatient, name)).live?.aliases.includes(done)) return;
    throw new VitrinaError(
      SEARCH_ERRORS.SEARCH_BUSY,
      `The indexes of es:${name} were changed by somebody else at the same time.`,
    );
  });
}
