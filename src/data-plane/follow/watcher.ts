import { setTimeout as delay } from "node:timers/promises";
import type { ChangeWatch } from "../../connectors/follower.ts";
import type { Connectors } from "../../connectors/index.ts";
import type { SourceRef } from "../../connectors/source.ts";
import type { MetaStore } from "../../meta-store/meta-store.ts";
import type { FollowingPipeline } from "../../meta-store/ports/follow.ts";
import type { Log } from "../../observability/log.ts";
import { databaseError } from "../../postgres/errors.ts";
import { monotonicMs } from "../heartbeat-messages.ts";

interface WatcherParts {
  readonly store: Pick<MetaStore, "follow">;
  readonly connectors: Pick<Connectors, "source">;
  readonly log: Log;
  /** How long to sleep while nothing follows. */
  readonly pollMs: number;
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
const SOON_MS = 1;
/** A question is answered sooner. Whatever takes longer is not waited for: the other sources are asked meanwhile. */
const LONGEST_ANSWER_MS = 500;

/**
 * Starts pipelines whose source or configuration has changed, and new ones. Each source is asked by one question for all that follow it. Any number of
 * runners may do so at once: a run is requested once, whoever asks. A source that does not answer keeps nothing else up.
 */
export class FollowWatcher {
  readonly #parts: WatcherParts;
  readonly #sources = new Map<string, WatchedSource>();
  #isStopped = false;
  #wake: () => void = () => undefined;
  #loop: Promise<void> = Promise.resolve();
  #failures = 0;

  constructor(parts: WatcherParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#loop = this.#run();
  }

  wake(): void {
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.wake();
    await this.#loop;
    await Promise.all([...this.#sources.values()].map((source) => source.close()));
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const pauseMs = await this.#look().catch((error: unknown) => this.#failed(error));
      if (this.#isStopped) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The meta-store did not answer; the runner's own loop says so. */
  #failed(error: unknown): number {
    this.#parts.log.debug({ err: error }, "could not look for pipelines that follow; trying again");
    this.#failures += 1;
    return Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
  }

  /** Whatever their source says: it has nothing to compare with. */
  async #startOutdated(): Promise<void> {
    const { store, log } = this.#parts;
    const outdated = await store.follow.outdated();
    if (outdated.length === 0) return;
    for (const id of await store.follow.requestOnChange(outdated.map((one) => one.id))) {
      const { name: pipeline } = outdated.find((one) => one.id === id) ?? {};
      log.debug(
        { pipeline, pipeline_id: id, status: "RUN_REQUESTED" },
        "new or with another configuration: run requested",
      );
    }
  }

  /** Returns the milliseconds until the next one is to be asked about. */
  async #look(): Promise<number> {
    await this.#startOutdated();
    const following = await this.#parts.store.follow.watched();
    this.#failures = 0;
    const named = new Map<string, FollowingPipeline[]>();
    for (const pipeline of following) {
      const name = `${pipeline.source_type} ${pipeline.source_connection}`;
      named.set(name, [...(named.get(name) ?? []), pipeline]);
    }
    for (const [name, source] of this.#sources) {
      if (named.has(name)) continue;
      this.#sources.delete(name);
      void source.close();
    }
    const waits = [...named].map(async ([name, pipelines]) => {
      const source = this.#sources.get(name) ?? new WatchedSource(this.#parts, pipelines[0] as SourceRef);
      this.#sources.set(name, source);
      return source.look(pipelines);
    });
    return Math.max(SOON_MS, Math.min(this.#parts.pollMs, ...(await Promise.all(waits))));
  }
}

/** One source, with the pipelines that follow it. */
class WatchedSource {
  readonly #parts: WatcherParts;
  readonly #of: SourceRef;
  readonly #askedAt = new Map<string, number>();
  #watch: { readonly watch: ChangeWatch; close(): Promise<void> } | undefined;
  #failures = 0;
  #silentUntil = 0;
  #forgotAt = monotonicMs();
  #isAsking = false;
  #isClosed = false;

  constructor(parts: WatcherParts, { source_type, source_connection }: SourceRef) {
    this.#parts = parts;
    this.#of = { source_type, source_connection };
  }

  /**
   * Never throws, and is soon over: a question that the source leaves unanswered goes on by itself, and no other one is
   * asked before it has ended. Returns the milliseconds until the next one is to be asked about.
   */
  async look(pipelines: readonly FollowingPipeline[]): Promise<number> {
    if (this.#isAsking) return LONGEST_ANSWER_MS;
    this.#isAsking = true;
    const looking = this.#lookNow(pipelines).finally(() => {
      this.#isAsking = false;
      // It may have connected after that.
      return this.#isClosed ? this.#end() : undefined;
    });
    const patience = new AbortController();
    const impatient = delay(LONGEST_ANSWER_MS, LONGEST_ANSWER_MS, { signal: patience.signal }).catch(
      () => LONGEST_ANSWER_MS,
    );
    try {
      return await Promise.race([looking, impatient]);
    } finally {
      patience.abort();
    }
  }

  async #lookNow(pipelines: readonly FollowingPipeline[]): Promise<number> {
    const now = monotonicMs();
    if (now < this.#silentUntil) return this.#silentUntil - now;
    const waitOf = ({ id, checkEverySeconds }: FollowingPipeline): number =>
      (this.#askedAt.get(id) ?? Number.NEGATIVE_INFINITY) + checkEverySeconds * 1000 - monotonicMs();
    const due = pipelines.filter((pipeline) => pipeline.mayStart && waitOf(pipeline) <= SOON_MS);
    try {
      if (due.length > 0) await this.#ask(due);
      await this.#forgetSeen();
      if (this.#failures > 0) this.#parts.log.info(this.#of, "the source answers again about its changes");
      this.#failures = 0;
    } catch (error) {
      await this.#failed(error);
      return this.#silentUntil - now;
    }
    // One that runs may end at any time, and wakes this runner if it runs here.
    const waits = pipelines.map((one) => (one.mayStart ? Math.max(0, waitOf(one)) : one.checkEverySeconds * 1000));
    return Math.min(...waits);
  }

  async #ask(due: readonly FollowingPipeline[]): Promise<void> {
    const { store, log } = this.#parts;
    const watch = await this.#open();
    for (const { id } of due) this.#askedAt.set(id, monotonicMs());
    const changed = new Set(
      await watch.changedSince(
        due.map(({ id, position, tables, ifRecorded }) => ({ pipelineId: id, position, tables, ifRecorded })),
      ),
    );
    if (changed.size === 0) return;
    const ids = due.map(({ id }) => id).filter((id) => changed.has(id));
    for (const id of await store.follow.requestOnChange(ids)) {
      const { name: pipeline } = due.find((one) => one.id === id) ?? {};
      log.debug({ pipeline, pipeline_id: id, status: "RUN_REQUESTED" }, "the source has changed: run requested");
    }
  }

  /** What every pipeline has seen takes up room in the source. */
  async #forgetSeen(): Promise<void> {
    const watch = await this.#open();
    if (monotonicMs() < this.#forgotAt + watch.forgetEveryMs) return;
    this.#forgotAt = monotonicMs();
    const positions = await this.#parts.store.follow.positionsIn(this.#of);
    for (const id of new Set(await watch.forgetSeen(positions))) {
      const fields = { ...this.#of, pipeline_id: id };
      this.#parts.log.warn(fields, "too far behind for the source to keep its changes: it will compare everything");
    }
  }

  async #open(): Promise<ChangeWatch> {
    if (this.#watch !== undefined) return this.#watch.watch;
    if (this.#isClosed) throw new Error("The source is not watched any more.");
    const source = await this.#parts.connectors.source(this.#of);
    const watch = await source.watchChanges?.();
    if (watch === undefined) throw new Error("The source does not tell of changes.");
    this.#watch = { watch, close: async () => void (await Promise.allSettled([watch.close(), source.close()])) };
    return watch;
  }

  /** Said once, until it answers again. */
  async #failed(error: unknown): Promise<void> {
    if (this.#isClosed) return;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    this.#failures += 1;
    this.#silentUntil = monotonicMs() + pauseMs;
    await this.#end();
    if (this.#failures > 1) return;
    const { code, message: reason } = databaseError(error, "ask the source for changes");
    this.#parts.log.warn({ ...this.#of, code, reason }, "cannot tell whether the source has changed; trying again");
  }

  /** Ends a question that is under way, too. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async #end(): Promise<void> {
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close();
  }
}
