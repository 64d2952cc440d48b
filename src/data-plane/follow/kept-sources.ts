import type { Follower } from "../../connectors/follower.ts";
import type { Connectors } from "../../connectors/index.ts";
import type { Source } from "../../connectors/source.ts";
import type { Pipeline, PipelineId } from "../../domain/pipeline.ts";
import type { Column } from "../../domain/row.ts";
import type { TaskPlan } from "../../domain/task-plan.ts";
import { monotonicMs } from "../heartbeat-messages.ts";
import { openSource } from "../open-source.ts";

/** What a run in follow mode reads from. */
export interface FollowedSource {
  readonly source: Source;
  readonly columns: readonly Column[];
  /** Once the run has opened it; the key is that of the target. */
  following: { readonly follower: Follower; readonly key: readonly string[] } | undefined;
  readonly configVersion: number;
  readonly examinedAt: number;
  /** Ends its connections, with whatever is under way on them. */
  readonly ending: AbortController;
  /** The run that has it does not end it any more. */
  unbind(): void;
}

/** A run may well take longer than this after its query was examined. */
const EXAMINED_FOR_MS = 60_000;
/** Each holds a connection to its source. */
const MOST_KEPT = 10;
/** A server that went away without a word would otherwise be waited for as long as a read may take. */
const ANSWERS_WITHIN_MS = 5000;

/**
 * Examining a query and deriving its plan takes longer than bringing a few keys up to date. So the source of a run that
 * ended well stays open for the next run of the pipeline, for a minute, with the session of its rounds. It is used
 * again only if every relation, column and view that the query reaches is as it was, and what its expressions depend on.
 */
export class KeptSources {
  readonly #kept = new Map<PipelineId, FollowedSource>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** Give it back by `release`. */
  async open(
    connectors: Connectors,
    pipeline: Pipeline,
    plan: TaskPlan,
    cancelSignal: AbortSignal,
  ): Promise<FollowedSource> {
    const kept = this.#kept.get(pipeline.id);
    this.#kept.delete(pipeline.id);
    if (kept !== undefined) {
      kept.unbind = endWith(kept.ending, cancelSignal);
      if (await isUsable(kept, pipeline)) return kept;
      // Nor does it always end at once: whoever does not answer does not say goodbye either.
      void close(kept);
    }
    const { config_version: configVersion } = pipeline;
    const ending = new AbortController();
    const unbind = endWith(ending, cancelSignal);
    const examinedAt = monotonicMs();
    const opened = await openSource(connectors, pipeline, plan, ending.signal);
    return { ...opened, following: undefined, configVersion, examinedAt, ending, unbind };
  }

  /** `mayKeep`: nothing went wrong with it. */
  async release({ id }: Pick<Pipeline, "id">, opened: FollowedSource, mayKeep: boolean): Promise<void> {
    opened.unbind();
    if (!mayKeep || this.#isClosed || isOver(opened) || opened.following === undefined) return close(opened);
    await opened.source.rest?.();
    this.#kept.set(id, opened);
    await this.#closeSome();
  }

  /** Nothing is kept any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const kept = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.all(kept.map(close));
  }

  /** Those whose time is over, and the oldest of too many. */
  async #closeSome(): Promise<void> {
    const tooMany = this.#kept.size - MOST_KEPT;
    const some = [...this.#kept].filter(([, opened], place) => place < tooMany || isOver(opened));
    for (const [id] of some) this.#kept.delete(id);
    clearTimeout(this.#timer);
    if (this.#kept.size > 0) {
      this.#timer = setTimeout(() => void this.#closeSome(), EXAMINED_FOR_MS / 4).unref();
    }
    await Promise.all(some.map(([, opened]) => close(opened)));
  }
}

function isOver({ examinedAt, ending }: FollowedSource): boolean {
  return ending.signal.aborted || monotonicMs() - examinedAt > EXAMINED_FOR_MS;
}

/** Its session may have been ended meanwhile, or lead nowhere; then this is where it is noticed. */
async function isUsable(kept: FollowedSource, pipeline: Pipeline): Promise<boolean> {
  if (isOver(kept) || kept.configVersion !== pipeline.config_version || kept.following === undefined) return false;
  const answer = kept.following.follower.isCurrent().catch(() => false);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ANSWERS_WITHIN_MS, false);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns how to undo it. */
function endWith(ending: AbortController, signal: AbortSignal): () => void {
  const end = (): void => ending.abort(signal.reason);
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  return () => signal.removeEventListener("abort", end);
}

async function close({ source, following }: FollowedSource): Promise<void> {
  await Promise.allSettled([following?.follower.close(), source.close()]);
}
