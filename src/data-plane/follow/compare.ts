import { isDeepStrictEqual } from "node:util";
import type { CompareCause, FollowPosition } from "../../domain/follow.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import { executeLoad } from "../execute-load.ts";
import type { EarlyEnd } from "../run-context.ts";
import { takeMark } from "../target-loss.ts";
import type { FollowSession } from "./session.ts";

export interface WhyEverything {
  /** A sentence. */
  readonly reason: string;
  /** True: an earlier run began it, and the reason is what that one found. */
  readonly isBegun?: boolean;
  readonly cause: CompareCause;
}

/**
 * Compares everything, by a full load. It reads no earlier than at the position: whatever it sees of later changes is
 * computed once more by the next round. So a comparison that was interrupted, and reads its rest later, ends with the
 * position that it began with. That holds for changes of rows only: if something else was altered meanwhile, such as a view,
 * which may be put back before the next round looks, it begins again.
 */
export async function compareEverything(
  session: FollowSession,
  now: FollowPosition,
  { reason, cause, isBegun = false }: WhyEverything,
): Promise<EarlyEnd | undefined> {
  const { parts, pipeline, commit, report } = session.run;
  const { comparePosition } = await parts.store.follow.get(pipeline.id);
  const mayContinue = isDeepStrictEqual(comparePosition?.fingerprint, now.fingerprint);
  if (comparePosition !== null && !mayContinue) await session.releaseTarget();
  const opened = await session.target("everything", mayContinue);
  const load = {
    ...opened,
    notes: [noteOf(isBegun ? `An earlier run began it and said: ${reason}` : reason, opened.resumed), ...opened.notes],
  };
  const begun = opened.startsAnew ? null : comparePosition;
  if (begun === null) await commit.noteCompareBegins(now, reason, session.tables);
  await faultPoint("compare_noted");
  report.log.info({ reason, resumed: begun !== null }, "comparing everything");
  const stop = await executeLoad(load);
  if (stop !== undefined) return stop;
  await session.moveTo(begun ?? now, await takeMark(load), true);
  report.observer.everythingCompared(cause);
  session.noteComparison(load);
  await session.releaseTarget();
  return undefined;
}

function noteOf(reason: string, resumed: boolean): string {
  return `Everything was compared${resumed ? ", continuing where an earlier run had stopped" : ""}. ${reason}`;
}
