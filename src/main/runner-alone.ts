import { setTimeout as delay } from "node:timers/promises";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { startProbeServer } from "../observability/probe-server.ts";
import { createRegistry } from "../observability/registry.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import type { RunningPart } from "./api.ts";
import { openStore } from "./database.ts";
import { isPortTaken, portTaken } from "./port-taken.ts";
import { startRunner } from "./runner.ts";
import { VERSION } from "./version.ts";

/** A runner in its own process; if METRICS_PORT is set, it serves its metrics and health there. */
export async function startRunnerAlone(
  settings: Settings,
  urls: DatabaseUrls,
  log: Log,
  stopSignal: AbortSignal = new AbortController().signal,
): Promise<RunningPart> {
  const store = openStore(urls, "runner", 1);
  const isReachable = await untilReachable(store, log, stopSignal).finally(() => store.close());
  if (!isReachable) return { stop: async () => undefined };
  const registry = createRegistry(VERSION);
  const runner = await startRunner(settings, urls, log, registry);
  const { host, port } = settings.metrics;
  if (port === undefined) return runner;
  try {
    const livenessProblem = (): string | undefined => livenessProblemOf(runner.silentMs(), settings.runner.pollMs);
    const probes = await startProbeServer({
      host,
      port,
      registry,
      livenessProblem,
      checkReady: runner.checkReady,
      log,
    });
    // Last, so that the metrics still show the last batches.
    const stop = (): Promise<void> => runner.stop().finally(() => probes.stop());
    return { stop };
  } catch (error) {
    await runner.stop();
    throw isPortTaken(error) ? portTaken({ host, port }) : error;
  }
}

/** Even a loop that waits for an unreachable meta-store comes round within this time. */
const MOST_SILENCE_MS = 120_000;

export function livenessProblemOf(silentMs: number, pollMs: number): string | undefined {
  if (silentMs <= Math.max(MOST_SILENCE_MS, 3 * pollMs)) return undefined;
  return "The runner has not looked for work for too long: it hangs.";
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Waits while the database has a temporary problem, as when everything starts at once. Throws what somebody must fix,
 * such as a wrong password or a missing schema. False: told to stop while waiting.
 */
export async function untilReachable(
  store: Pick<MetaStore, "checkReady">,
  log: Log,
  stopSignal: AbortSignal,
): Promise<boolean> {
  for (let pauseMs = FIRST_PAUSE_MS; !stopSignal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      await store.checkReady();
      return true;
    } catch (error) {
      if (!(error instanceof VitrinaError) || !mayPass(error.retry)) throw error;
      const { code, message: reason } = error;
      log.warn({ code, reason, wait_ms: pauseMs }, "the meta-store does not answer yet; waiting for it");
      await delay(pauseMs, undefined, { signal: stopSignal }).catch(() => undefined);
    }
  }
  return false;
}
