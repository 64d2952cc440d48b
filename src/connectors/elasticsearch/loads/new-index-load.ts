import { VitrinaError } from "../../../domain/error-catalogue.ts";
import { faultPoint } from "../../../observability/fault-points.ts";
import { requireFewDeletions } from "../../deletion-guard.ts";
import { createIndex, putMark } from "../create-index.ts";
import { SEARCH_ERRORS } from "../errors.ts";
import { impatientCluster } from "../impatient-cluster.ts";
import {
  type AliasAction,
  addAlias,
  changeAliases,
  countDocuments,
  dropIndex,
  type FamilyIndex,
  type IndexMark,
  previousAlias,
  readFamily,
  refreshAndCount,
  removeAlias,
  removeIndex,
  writeAlias,
  writersOf,
} from "../index-family.ts";
import { tidyFamily } from "../tidy-family.ts";
import { takeWriteAlias } from "../write-alias.ts";
import { type IndexLoad, indexOfRun, type LoadParts, markOf } from "./load.ts";

/**
 * A full load fills an index of its own, with the mapping that the pipeline has now. When it is complete, and has as many
 * documents as were written, the name that people search by moves to it in one step.
 */
export function newIndexLoad(parts: LoadParts): IndexLoad {
  const { cluster, name, request, definition, family } = parts;
  const { claim } = request;
  const unfinished = findUnfinished(parts);
  let index = unfinished?.index ?? indexOfRun(parts);
  let mark = unfinished?.mark ?? markOf(parts);
  /** How many documents the index must have. */
  const expected: ExpectedCount = { documents: 0, uncertain: 0 };

  const isLive = (): boolean => family.live?.index === index;

  return {
    name: "new index",
    resumed: unfinished !== undefined,

    async begin() {
      const abandoned = family.loading.filter((one) => one.mark?.pipeline_id === claim.pipelineId);
      for (const one of abandoned) await dropIndex(cluster, one.index);
      index = indexOfRun(parts);
      mark = markOf(parts);
      // Nobody searches it while it is loaded, so it need not be made searchable every second.
      await createIndex(cluster, {
        index,
        aliases: [ownAliasOf(parts)],
        definition,
        mark,
        settings: { refresh_interval: "-1" },
      });
    },

    async takeWriteAlias() {
      const alias = await takeWriteAlias(parts, index);
      if (unfinished?.index === index) expected.documents = await refreshAndCount(cluster, index);
      return alias;
    },

    count({ created, deleted, uncertain }) {
      expected.documents += created - deleted;
      expected.uncertain += uncertain;
    },

    async finish(batchNo, guard) {
      const documents = await refreshAndCount(cluster, index);
      requireComplete(name, documents, expected);
      if (isLive()) return { rows_deleted: 0 };
      const replaced = family.live ?? family.plain;
      const existing = replaced === undefined ? 0 : await countDocuments(cluster, replaced.index);
      const deleted = Math.max(0, existing - documents);
      requireFewDeletions(`es:${name}`, guard, { existing, deleted }, documents);
      await makeSearchable(parts, index);
      await putMark(cluster, index, { ...mark, loaded: loadedNow(batchNo, index === unfinished?.index) });
      await faultPoint("load_applied");
      return { rows_deleted: deleted };
    },

    makeVisible: () => switchTo(parts, index, isLive()),

    // The index that people search is replaced as a whole, whatever became of it.
    takeMark: async () => null,
    lossSince: async () => undefined,
    async giveUp() {
      // Asked again: it may have become visible without our knowing.
      const { live } = await readFamily(cluster, name);
      if (live?.index !== index) await dropIndex(cluster, index);
    },
    async tidyUp() {
      await tidyFamily(cluster, name, request.options);
    },
  };
}

function loadedNow(batchNo: number, inParts: boolean): Required<IndexMark>["loaded"] {
  return { batch_no: batchNo, at: new Date().toISOString(), in_parts: inParts };
}

interface ExpectedCount {
  documents: number;
  /** How many of them may be counted wrongly. */
  uncertain: number;
}

function requireComplete(name: string, documents: number, expected: Readonly<ExpectedCount>): void {
  if (Math.abs(documents - expected.documents) > expected.uncertain) {
    throw new VitrinaError(
      SEARCH_ERRORS.INDEX_INCOMPLETE,
      `The new index of es:${name} has ${documents} documents, but ${expected.documents} were written.`,
    );
  }
}

/** As often as the definition says, from now on. */
async function makeSearchable({ cluster, definition }: LoadParts, index: string): Promise<void> {
  const refresh_interval = definition.settings["refresh_interval"] ?? null;
  const settings = { method: "PUT", path: `/${index}/_settings`, body: { index: { refresh_interval } } } as const;
  await cluster.ask(`end the load of ${index}`, settings);
}

function ownAliasOf({ name, request: { claim } }: LoadParts): string {
  return writeAlias(name, claim.pipelineId, claim.epoch);
}

async function switchTo(parts: LoadParts, index: string, isLive: boolean): Promise<void> {
  const { client, name, request } = parts;
  const ownAlias = ownAliasOf(parts);
  const impatient = impatientCluster(client, request.lost);
  const actions = isLive ? [removeAlias(index, ownAlias)] : switchActions(parts, index);
  await faultPoint("switch_ready");
  const changed = await changeAliases(impatient, `switch ${name} to ${index}`, actions);
  await faultPoint("alias_switched");
  if (changed) return;
  const { live } = await readFamily(impatient, name);
  if (live?.index === index && !live.aliases.includes(ownAlias)) return;
  throw new VitrinaError(
    SEARCH_ERRORS.SEARCH_BUSY,
    `The indexes of es:${name} were changed by somebody else at the same time.`,
  );
}

/** The whole switch at once, bound to the alias of this claim: whoever was taken over has no such alias any more. */
function switchActions(parts: LoadParts, index: string): AliasAction[] {
  const { name, request, family } = parts;
  const { claim } = request;
  const { live, previous, plain } = family;
  // What an interrupted load left is no index to go back to: the one before it stays.
  const keepsPrevious = live?.mark?.loaded?.in_parts === true && previous !== undefined;
  const keepsLive = live?.mark?.target === name && !keepsPrevious;
  return [
    removeAlias(index, ownAliasOf(parts)),
    ...(previous === undefined || keepsPrevious ? [] : [removeAlias(previous.index, previousAlias(name))]),
    ...(live === undefined ? [] : [removeAlias(live.index, name)]),
    ...(live === undefined || !keepsLive ? [] : [addAlias(live.index, previousAlias(name))]),
    ...(live === undefined
      ? []
      : writersOf(live, name, claim.pipelineId).map(({ alias }) => removeAlias(live.index, alias))),
    ...(plain === undefined ? [] : [removeIndex(plain.index)]),
    addAlias(index, name),
  ];
}

/**
 * An index that is still being loaded by this pipeline, from the same definition. Or one that is searched already, but
 * whose load was not reported: then no batch was committed since.
 */
function findUnfinished({ key, request, definition, family }: LoadParts): FamilyIndex | undefined {
  const { pipelineId, batchNo } = request.claim;
  const isSame = ({ mark }: FamilyIndex): boolean =>
    mark?.pipeline_id === pipelineId &&
    mark.definition === definition.fingerprint &&
    JSON.stringify(mark.key) === JSON.stringify(key);
  const loading = family.loading.find(isSame);
  if (loading !== undefined) return loading;
  const { live } = family;
  return live !== undefined && isSame(live) && live.mark?.loaded?.batch_no === batchNo ? live : undefined;
}
