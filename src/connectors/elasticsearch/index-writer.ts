import { VitrinaError } from "../../domain/error-catalogue.ts";
import { describeLoss } from "../../domain/target-mark.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { BatchResult, SinkRequest, SinkWriter, Uncommitted } from "../sink.ts";
import { type BulkResult, BulkSender, REPLACING, Superseded } from "./bulk.ts";
import type { Cluster } from "./cluster.ts";
import { documentEncoder, documentId } from "./documents.ts";
import { countDocuments, type IndexFamily, refreshAndCount, requireAlias } from "./index-family.ts";
import type { IndexLoad, LoadParts } from "./loads/load.ts";
import { newIndexLoad } from "./loads/new-index-load.ts";
import { upsertLoad } from "./loads/upsert-load.ts";
import { mergingLines } from "./merging-lines.ts";

/** Encode → bulk → every item acknowledged. A whole load becomes visible when it is committed. */
export function indexWriter(given: Omit<LoadParts, "key">): SinkWriter {
  const parts: LoadParts = { ...given, key: chooseKey(given.request, given.family) };
  const { client, cluster, patience, name, key, request, family } = parts;
  const { claim, columns, options } = request;
  const adopts = options.adopt === true && request.load.kind === "replace";
  if (!adopts) requireAlias(family);
  if (family.live === undefined && family.plain === undefined && !request.createTarget) {
    throw new VitrinaError("TARGET_MISSING", `The target es:${name} does not exist.`);
  }
  const load = request.load.kind === "upsert" ? upsertLoad(parts) : newIndexLoad(parts);
  const encode = documentEncoder(columns, key, options.delete_when);
  const sender = new BulkSender(client, patience, options.write === "merge" ? mergingLines(client) : REPLACING);
  const deletesKeys = request.load.kind === "upsert" && request.load.deletes === true;
  let alias: string | undefined;
  let lastBatchNo = claim.batchNo;
  let isVisible = false;

  return {
    key,
    strategy: load.name,
    resumed: load.resumed,
    notes: family.plain === undefined ? [] : [adoption(name)],
    commits: { way: "after" },
    takeMark: load.takeMark,
    lossSince: load.lossSince,
    deletesRows: options.delete_when !== undefined || deletesKeys,
    databaseMark: undefined,

    begin: async () => madeBy(load.begin),

    countUpTo: (limit) => refreshAndCount(cluster, name, { limit }),
    countKeys: (keys) => countIds(cluster, name, [...new Set(keys.map(documentId))]),

    async write(batch, { batchNo }, _setRefusedAside, keys = []) {
      if (keys.length > 0 && !deletesKeys) {
        throw new VitrinaError("INTERNAL", `A load by ${load.name} deletes no keys.`);
      }
      const encoded = encode(batch.rows(), versionOf(claim.epoch, batchNo), keys);
      const { duplicates, rejects } = encoded;
      const operations = [...encoded.operations, ...encoded.deletions];
      alias ??= await load.takeWriteAlias();
      await faultPoint("batch_staged");
      const sent = await sender.send(alias, operations).catch((error: unknown) => explain(error, parts, load));
      load.count(sent);
      await faultPoint("batch_applied");
      const acknowledged = madeBy(async () => {
        if (batch.count > 0) lastBatchNo = batchNo;
      });
      return { result: batchResult(sent, duplicates, rejects), ...acknowledged };
    },

    async finish(guard) {
      alias ??= await load.takeWriteAlias();
      const finished = await load.finish(lastBatchNo, guard);
      const visible = madeBy(async () => {
        await load.makeVisible();
        isVisible = true;
      });
      return { ...finished, ...visible };
    },

    giveUp: async () => madeBy(load.giveUp),

    async close() {
      // The next load cleans up what is left over; it must not spoil this one, which is complete.
      if (isVisible) await load.tidyUp().catch(() => undefined);
    },
  };
}

const IDS_PER_SEARCH = 2000;

async function countIds(cluster: Cluster, index: string, ids: readonly string[]): Promise<number> {
  let found = 0;
  for (let from = 0; from < ids.length; from += IDS_PER_SEARCH) {
    const some = { ids: ids.slice(from, from + IDS_PER_SEARCH) };
    found += await (from === 0 ? refreshAndCount : countDocuments)(cluster, index, some);
  }
  return found;
}

/** An index has no transactions: there is nothing to roll back, because nothing has happened before the commit. */
function madeBy(commit: () => Promise<void>): Uncommitted {
  return { transaction: undefined, commit, rollback: async () => undefined };
}

const adoption = (name: string): string =>
  `The index ${name} gives way to an alias of that name when the load is complete; its documents are deleted then.`;

/** Grows with every claim, and within a claim with every batch. A repeated batch keeps its version. */
const versionOf = (epoch: number, batchNo: number): bigint => (BigInt(epoch) << 32n) + BigInt(batchNo);

function batchResult(sent: BulkResult, duplicates: number, rejects: BatchResult["rejects"]): BatchResult {
  return {
    rows_written: sent.created + sent.updated + sent.deleted,
    rows_unchanged: sent.absent,
    rows_deduplicated: duplicates,
    rows_deleted: sent.gone,
    rejects: [...rejects, ...sent.rejects],
  };
}

/** The index refused a version or the alias: either another runner goes on here, or something is wrong with the index. */
async function explain(error: unknown, { request, name, family }: LoadParts, load: IndexLoad): Promise<never> {
  if (!(error instanceof Superseded)) throw error;
  await request.requireLease();
  const loss = family.live && (await load.lossSince({ identity: family.live.uuid }));
  if (loss !== undefined) throw new VitrinaError("TARGET_CHANGED", `${describeLoss(`es:${name}`, loss)}.`);
  throw new VitrinaError("TARGET_AHEAD", `es:${name} cannot take what this run writes: ${error.message}.`, {
    cause: error,
  });
}

export function chooseKey(
  { key, columns }: Pick<SinkRequest, "key" | "columns">,
  { live, name }: IndexFamily,
): readonly string[] {
  const chosen = key.length > 0 ? key : (live?.mark?.key ?? []);
  if (chosen.length === 0) {
    throw new VitrinaError("KEY_MISSING", `es:${name} has no key of its own.`, { hint: "Set target_key." });
  }
  const missing = chosen.find((column) => !columns.some((known) => known.name === column));
  if (missing === undefined) return chosen;
  throw new VitrinaError("KEY_NOT_IN_QUERY", `The query returns no column "${missing}", which is in the key.`);
}
