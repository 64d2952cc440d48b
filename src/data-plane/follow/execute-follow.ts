import type { FollowRound, KeysOfRound } from "../../connectors/follower.ts";
import { plural } from "../../domain/counted.ts";
import type { CompareCause } from "../../domain/follow.ts";
import { parseTaskPlan, type TaskPlan } from "../../domain/task-plan.ts";
import type { FollowState } from "../../meta-store/ports/follow.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import { TooManyRejects } from "../commit.ts";
import { beginLoad, markTargetOnce } from "../execute-load.ts";
import { openReadingFrom } from "../load.ts";
import { retryRejects } from "../retry-rejects.ts";
import type { EarlyEnd, Load, RunContext } from "../run-context.ts";
import { misfitOf, requireSameTarget, startOver, takeMark } from "../target-loss.ts";
import { compareEverything, type WhyEverything } from "./compare.ts";
import { guardRound } from "./deletion-limit.ts";
import type { FollowedSource } from "./kept-sources.ts";
import { moveKeys } from "./move-keys.ts";
import { refuseRowsWithoutKey } from "./rows-without-key.ts";
import { FollowSession } from "./session.ts";
import { sweep } from "./sweep.ts";

/** A run that finds changes again and again leaves its slot to others; the watcher starts the next one. */
const MOST_ROUNDS = 20;
/** Whatever their share, so few keys are read faster one by one than with everything else. People are told of both limits. */
const FEW_KEYS = 1000;
/** More than these are not gathered: everything is compared. */
const MOST_KEYS = 1_000_000;

/** Follows the changes of the source until there are none. */
export async function executeFollow(run: RunContext): Promise<EarlyEnd | "finished"> {
  const { parts, pipeline, control } = run;
  const plan = parseTaskPlan(pipeline, parts.targets);
  const followed = await parts.keptSources.open(parts.connectors, pipeline, plan, control.cancelSignal);
  let end: EarlyEnd | "finished" | undefined;
  try {
    end = await followSource(run, plan, followed);
    return end;
  } finally {
    await parts.keptSources.release(pipeline, followed, end === "finished");
  }
}

async function followSource(run: RunContext, plan: TaskPlan, followed: FollowedSource): Promise<EarlyEnd | "finished"> {
  const reading = await openReadingFrom(run, plan, followed);
  const session = new FollowSession(reading, followed);
  try {
    const end = await followUntilQuiet(session);
    if (end === "finished") await session.restTarget();
    return end;
  } catch (error) {
    if (error instanceof TooManyRejects) await run.commit.keepRejects(error.rejects);
    throw error;
  } finally {
    await session.releaseTarget();
    await reading.close();
  }
}

async function followUntilQuiet(session: FollowSession): Promise<EarlyEnd | "finished"> {
  let mayCompare = true;
  for (let rounds = 1; ; rounds += 1) {
    const stop = session.run.control.stopRequest();
    if (stop !== undefined) return stop;
    const done = await followOnce(session, { isFirst: rounds === 1, mayCompare });
    if (done !== "changed" && done !== "compared" && done !== "quiet") return done;
    if (done === "quiet" || rounds >= MOST_ROUNDS) return "finished";
    if (done === "compared") mayCompare = false;
    else if (!(await session.hasNews())) return "finished";
  }
}

interface RoundPlace {
  readonly isFirst: boolean;
  /** False: everything was compared in this run already; what calls for it again is left to the next one. */
  readonly mayCompare: boolean;
}

/** One round, or a comparison of everything, whichever is called for. */
async function followOnce(
  session: FollowSession,
  place: RoundPlace,
): Promise<EarlyEnd | "changed" | "compared" | "quiet"> {
  const { parts, pipeline, commit, report } = session.run;
  const { observer } = report;
  const state = await parts.store.follow.get(pipeline.id);
  const unusable = await observer.timeStage("open", () => openTarget(session, state));
  const round = await session.openRound();
  try {
    const step =
      unusable === undefined ? await findKeys(session, round, state) : { kind: "everything" as const, ...unusable };
    if (step.kind === "everything") {
      if (!place.mayCompare) {
        // Comparing everything has repaired whatever differed, although it cannot tell what was a defect.
        if (state.sweepWanted) await commit.noteSwept(0, null);
        return "quiet";
      }
      // Not needed any more, and the source keeps every row version for as long as it is open.
      await round.close();
      return (await compareEverything(session, round.position, step)) ?? "compared";
    }
    const stop = await observer.timeStage("batches", () => executeRound(session, round, step, place.isFirst));
    if (stop !== undefined) return stop;
    const stopOfSweep = state.sweepWanted ? await sweep(session, round, state.sweepNext) : undefined;
    return stopOfSweep ?? (step.changes === 0 ? "quiet" : "changed");
  } finally {
    await round.close();
  }
}

type KeysOrEverything = KeysOfRound | ({ readonly kind: "everything" } & WhyEverything);

const everything = (reason: string, cause: CompareCause): KeysOrEverything => ({ kind: "everything", reason, cause });

/**
 * Opens the target for what is to be done, and says why the position cannot be used, if it cannot: then everything is
 * compared. Once it is open, nobody else writes to it.
 */
async function openTarget(session: FollowSession, state: FollowState): Promise<WhyEverything | undefined> {
  const unusable = whyUnusable(state, session.fingerprint);
  if (unusable !== undefined) {
    await session.target("everything", state.comparePosition !== null);
    return unusable;
  }
  if (session.isOpenFor("keys")) return undefined;
  const load = await session.target("keys");
  const misfit = await misfitOf(load, load.progress);
  if (misfit !== undefined) {
    await startOver(load, misfit);
    await session.target("everything");
    return { reason: `${misfit}.`, cause: "target" };
  }
  await beginLoad(load);
  await markTargetOnce(load);
  await retryRejects(load);
  return undefined;
}

/** Whatever the source says about its changes. */
function whyUnusable(state: FollowState, fingerprint: string): WhyEverything | undefined {
  const position = (reason: string): WhyEverything => ({ reason, cause: "position" });
  if (state.comparePosition !== null) {
    return { ...position(state.compareReason ?? "It has to be compared."), isBegun: true };
  }
  if (state.position === null) {
    const isFirst = state.lastCompareAt === null;
    return isFirst ? { reason: "It is the first run.", cause: "first_run" } : position("The position was given up.");
  }
  if (state.fingerprint === fingerprint) return undefined;
  return position("The query, its key or its target is another than before.");
}

/** The keys that have changed since the position; or why everything is compared instead. */
async function findKeys(
  session: FollowSession,
  round: FollowRound,
  { position }: FollowState,
): Promise<KeysOrEverything> {
  const { max_changes: maxChanges, full_compare_above_percent: percent } = session.run.pipeline.follow;
  if (position === null) return everything("The position was given up.", "position");
  const found = await round.keysSince(position, { maxChanges, maxKeys: MOST_KEYS });
  await faultPoint("keys_found");
  if (found.kind === "everything") return everything(found.reason, "source");
  if (found.keys.length <= FEW_KEYS) return found;
  const load = await session.target("keys");
  const enough = Math.ceil((100 * found.keys.length) / percent);
  const rows = await load.writer.countUpTo(enough);
  if (rows >= enough) return found;
  const share = `${plural(found.keys.length, "key was", "keys were")} concerned, more than ${percent} % of ${plural(rows, "row")}.`;
  return everything(share, "keys");
}

async function executeRound(
  session: FollowSession,
  round: FollowRound,
  { keys, changes, mayLackKeys }: KeysOfRound,
  isFirst: boolean,
): Promise<EarlyEnd | undefined> {
  const load = await session.target("keys");
  load.progress.rejectedInRound = 0;
  await guardRound(load, round, keys);
  const stop =
    (await moveKeys(load, round, keys)) ?? (mayLackKeys ? await refuseRowsWithoutKey(load, round) : undefined);
  if (stop !== undefined) return stop;
  if (isFirst || changes > 0) {
    const mark = keys.length > 0 ? await markWritten(load) : load.progress.targetMark;
    await session.moveTo(round.position, mark, false);
    await session.noteRound(load, { changes, keys: keys.length });
  }
  return undefined;
}

/** Checked after the mark is taken: a target emptied in between would be recorded as rightly empty. */
async function markWritten(load: Load): Promise<Load["progress"]["targetMark"]> {
  const mark = await takeMark(load);
  await requireSameTarget(load, load.progress.targetMark);
  load.progress.targetMark = mark;
  return mark;
}
