import type { Connectors } from "../connectors/index.ts";
import type { Targets } from "../connectors/targets.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Target } from "../domain/target.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { AbandonedTarget } from "../meta-store/ports/housekeeping.ts";
import type { Log } from "../observability/log.ts";

interface ClearAwayParts {
  readonly store: Pick<MetaStore, "housekeeping">;
  readonly connectors: Connectors;
  readonly targets: Targets;
  readonly log: Log;
}

/**
 * Clears away what pipelines left at targets that they no longer have. One at a time, alongside the pipelines: a target
 * that does not answer holds nothing else up. It needs no lease, since doing it twice does no harm.
 */
export class ClearAwaySlot {
  readonly #parts: ClearAwayParts;
  #running: Promise<void> | undefined;

  constructor(parts: ClearAwayParts) {
    this.#parts = parts;
  }

  async tick(): Promise<void> {
    if (this.#running !== undefined) return;
    const abandoned = await this.#parts.store.housekeeping.claimAbandonedTarget();
    if (abandoned === undefined) return;
    this.#running = clearAway(this.#parts, abandoned).finally(() => {
      this.#running = undefined;
    });
  }

  async drain(): Promise<void> {
    await this.#running;
  }
}

/** Never throws: what failed is retried later, at the time the claim has set. */
async function clearAway({ store, connectors, targets, log }: ClearAwayParts, left: AbandonedTarget): Promise<void> {
  const ids = { pipeline_id: left.pipelineId, target: left.targetTable };
  try {
    const lookAfter = left.isBack ? null : await clearTarget(connectors, targets, left);
    await store.housekeeping.settleAbandonedTarget(left.id, lookAfter);
    log.debug(ids, "nothing is left at a pipeline's former target");
  } catch (error) {
    log.warn({ ...ids, err: error }, "could not clean up a pipeline's former target; trying again later");
  }
}

/** A target that is no longer ours to write to is left as it is. */
async function clearTarget(
  connectors: Connectors,
  targets: Targets,
  { pipelineId, targetTable, options, isShared }: AbandonedTarget,
): Promise<Date | null> {
  const target = allowedTarget(targets, targetTable);
  if (target === undefined || !targets.isConfigured(target)) return null;
  const sink = await connectors.sink(target);
  return sink.clearAway({ target, pipelineId, options, isShared });
}

function allowedTarget(targets: Targets, text: string): Target | undefined {
  try {
    return targets.require(text);
  } catch (error) {
    if (error instanceof VitrinaError && error.code === "TARGET_NOT_ALLOWED") return undefined;
    throw error;
  }
}
