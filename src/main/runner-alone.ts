import type { Log } from "../observability/log.ts";
import { startProbeServer } from "../observability/probe-server.ts";
import { createRegistry } from "../observability/registry.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import type { RunningPart } from "./api.ts";
import { openStore } from "./database.ts";
import { isPortTaken, portTaken } from "./port-taken.ts";
import { startRunner } from "./runner.ts";
import { untilReachable } from "./until-reachable.ts";
import { VERSION } from "./version.ts";

/** A runner in a process of its own: where METRICS_PORT is set, others can see how it is. */
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
    const ailment = (): string | undefined => ailmentOf(runner.silentMs(), settings.runner.pollMs);
    const probes = await startProbeServer({ host, port, registry, ailment, checkReady: runner.checkReady, log });
    // Last, so that whoever watches sees the batches end.
    const stop = (): Promise<void> => runner.stop().finally(() => probes.stop());
    return { stop };
  } catch (error) {
    await runner.stop();
    throw isPortTaken(error) ? portTaken({ host, port }) : error;
  }
}

/** A loop that waits for a meta-store that is away still comes round in this time. */
const MOST_SILENCE_MS = 120_000;

export function ailmentOf(silentMs: number, pollMs: number): string | undefined {
  if (silentMs <= Math.max(MOST_SILENCE_MS, 3 * pollMs)) return undefined;
  return "The runner has not looked for work for too long: it hangs.";
}
