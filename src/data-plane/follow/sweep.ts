import type { FollowRound } from "../../connectors/follower.ts";
import type { ComparisonRequest, ComparisonResult } from "../../connectors/sink.ts";
import type { ScanPosition } from "../../domain/checkpoint.ts";
import { plural } from "../../domain/counted.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { SweepPosition } from "../../domain/follow.ts";
import { LISTED_KEYS } from "../../domain/reconcile.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import { addRows } from "../compare-rows.ts";
import { closeAll, withPlainTypes } from "../load.ts";
import type { EarlyEnd } from "../run-context.ts";
import { compareEverything } from "./compare.ts";
import type { FollowSession } from "./session.ts";

/**
 * After a round, in its snapshot: compares the target, which has every change up to it, with the query, or the next part
 * of it. Whatever differs is a defect of ours: it is told, counted, and everything is repaired.
 */
export async function sweep(
  session: FollowSession,
  round: FollowRound,
  from: SweepPosition | null,
): Promise<EarlyEnd | undefined> {
  const { commit, report } = session.run;
  const at = { snapshot: round.exportedSnapshot, part: partAt(session, from) };
  const compared = await compareAt(session, at, false).catch((error: unknown) => {
    if (!(error instanceof VitrinaError) || error.retry !== "row") throw error;
    return compareAt(session, at, true);
  });
  if (typeof compared === "string") return compared;
  const { found, upTo } = compared;
  const defects = await defectsIn(session, found);
  if (defects === 0) {
    // Only now: whatever ends this run before, the next one compares the same part.
    const next = at.part === undefined || upTo === null ? null : { after: [...upTo], parts: at.part.parts - 1 };
    await commit.noteSwept(0, next);
    const more = next === null ? {} : { parts_left: next.parts };
    report.log.info({ rows_compared: found.source.rows, ...more }, "sweep found no difference");
    return undefined;
  }
  report.log.error(
    {
      repaired: defects,
      missing: firstOf(found.missing),
      extra: firstOf(found.extra),
      different: firstOf(found.different),
    },
    "sweep found rows that differ although every change was followed; repairing them",
  );
  const reason = `A sweep found ${plural(defects, "row that differs", "rows that differ")} although every change had been followed.`;
  // In this order: once it is noted, everything is compared, whatever becomes of this run.
  await commit.noteCompareBegins(round.position, reason, session.tables);
  await commit.noteSwept(defects, null);
  report.observer.rowsRepaired(defects);
  await faultPoint("sweep_compared");
  return compareEverything(session, round.position, { reason, cause: "sweep" });
}

/** The last of them goes to the end, so that all of the key space is compared in so many sweeps, however it grows. */
function partAt({ run: { pipeline } }: FollowSession, from: SweepPosition | null): ComparisonRequest["part"] {
  const { sweep_parts: all } = pipeline.follow;
  if (all === 1) return undefined;
  return { after: from?.after ?? null, parts: Math.min(from?.parts ?? all, all) };
}

const TOLD_KEYS = 20;

function firstOf<K>({ count, keys }: { readonly count: number; readonly keys: readonly K[] }) {
  return { count, keys: keys.slice(0, TOLD_KEYS) };
}

/** A reason to stop, or what the comparison has found. */
async function compareAt(
  session: FollowSession,
  { snapshot, part }: { snapshot: string; part: ComparisonRequest["part"] },
  setRefusedAside: boolean,
): Promise<EarlyEnd | { found: ComparisonResult; upTo: ScanPosition | null }> {
  const { parts, pipeline, plan, source, columns, transform, control } = session.run;
  const sink = await parts.connectors.sink(plan.target);
  const comparison = await sink.openComparison({
    target: plan.target,
    columns: withPlainTypes(transform.columns, columns),
    key: pipeline.target_key,
    incrementalKey: null,
    options: pipeline.target_options,
    setRefusedAside,
    part,
  });
  const { key, range } = comparison;
  const stopping = new AbortController();
  try {
    const reader = {
      source,
      transform: plan.transforms.length === 0 ? undefined : transform,
      comparison,
      batchSize: pipeline.batch_size,
      signal: AbortSignal.any([control.endSignal, stopping.signal]),
    };
    const request = {
      query: plan.readerQuery,
      columns,
      orderBy: range === undefined ? [] : key,
      after: range?.after ?? null,
      until: range?.upTo ?? null,
      inclusive: false,
      // Rows without a key belong to the last part.
      nulls: range?.upTo ? ("none" as const) : ("last" as const),
      snapshot,
    };
    await addRows(reader, request, "settled", async () => {
      if (control.stopRequest() !== undefined) stopping.abort();
    });
    return { found: await comparison.finish(LISTED_KEYS), upTo: range?.upTo ?? null };
  } catch (error) {
    const end = control.stopRequest();
    if (end === undefined) throw error;
    return end;
  } finally {
    await closeAll([comparison]);
  }
}

/** A row that the target refuses is missing there, or has its old values: that is told by the rejects. */
async function defectsIn(
  { run: { parts, pipeline } }: FollowSession,
  { missing, extra, different, source }: ComparisonResult,
): Promise<number> {
  const count = missing.count + different.count;
  const listed = [...missing.keys, ...different.keys.map(({ key }) => key)];
  const refused =
    listed.length === count
      ? new Set(await parts.store.rejects.ofKeys(pipeline.id, listed)).size
      : await parts.store.rejects.count(pipeline.id);
  return Math.max(0, count - Math.max(refused, source.rows_refused)) + extra.count;
}
