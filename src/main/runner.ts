import type { Registry } from "prom-client";
import { openConnectors } from "../connectors/index.ts";
import { Runner } from "../data-plane/runner.ts";
import { leaseTiming } from "../domain/lease.ts";
import { enableFaults } from "../observability/fault-points.ts";
import type { Log } from "../observability/log.ts";
import { startProbeServer } from "../observability/probe-server.ts";
import { createRegistry } from "../observability/registry.ts";
import { createRunnerMetrics } from "../observability/runner-metrics.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import { openTaskHost } from "../tasks/open-task-host.ts";
import type { TaskHost } from "../tasks/task.ts";
import { isPortTaken, portTaken, type RunningPart } from "./api.ts";
import { openStore } from "./database.ts";
import { VERSION } from "./version.ts";

interface RunningRunner extends RunningPart {
  /** What is wrong with this process, if anything. */
  ailment(): string | undefined;
  checkReady(): Promise<void>;
}

/** A loop that waits for a meta-store that is away still comes round in this time. */
const MOST_SILENCE_MS = 120_000;

/** A runner in a process of its own: where METRICS_PORT is set, others can see how it is. */
export async function startRunnerAlone(settings: Settings, urls: DatabaseUrls, log: Log): Promise<RunningPart> {
  const registry = createRegistry(VERSION);
  const runner = await startRunner(settings, urls, log, registry);
  const { host, port } = settings.metrics;
  if (port === undefined) return runner;
  try {
    const { ailment, checkReady } = runner;
    const probes = await startProbeServer({ host, port, registry, ailment, checkReady, log });
    // Last, so that whoever watches sees the batches end.
    const stop = (): Promise<void> => runner.stop().finally(() => probes.stop());
    return { stop };
  } catch (error) {
    await runner.stop();
    throw isPortTaken(error) ? portTaken({ host, port }) : error;
  }
}

export async function startRunner(
  settings: Settings,
  urls: DatabaseUrls,
  log: Log,
  registry: Registry = createRegistry(VERSION),
): Promise<RunningRunner> {
  if (settings.faults !== undefined) enableFaults(settings.faults);
  const { concurrency, pollMs, leaseMs, readTimeoutMs, stopTimeoutMs, retry } = settings.runner;
  const store = openStore(urls, "runner", concurrency + 3);
  const timing = leaseTiming(leaseMs);
  const sourceUrls = new Map([["main", urls.reader], ...settings.sourceUrls]);
  const tasks = openTasks(settings, log);
  const runner = new Runner({
    store,
    log,
    version: VERSION,
    concurrency,
    pollMs,
    leaseMs,
    stopTimeoutMs,
    targets: settings.targets,
    guard: { allowedSchemas: settings.sourceSchemas },
    tasks,
    retry,
    observer: createRunnerMetrics(registry, concurrency),
    connectors: openConnectors({
      sources: new Map(
        [...sourceUrls].map(([name, url]) => [name, { url, applicationName: "vitrina runner read", readTimeoutMs }]),
      ),
      postgres: {
        url: urls.writer,
        loaderUrl: urls.loader,
        applicationName: "vitrina runner write",
        statementTimeoutMs: timing.statementTimeoutMs,
        idleTimeoutMs: timing.idleTimeoutMs,
        comparisonTimeoutMs: readTimeoutMs,
      },
      elasticsearch: settings.search,
    }),
  });
  const stop = async (): Promise<void> => {
    await runner.stop();
    await tasks.close();
    await store.close();
  };
  try {
    await tasks.load();
    await runner.start();
    const mostSilenceMs = Math.max(MOST_SILENCE_MS, 3 * pollMs);
    return {
      stop,
      ailment: () =>
        runner.silentMs > mostSilenceMs ? "The runner has not looked for work for too long: it hangs." : undefined,
      checkReady: () => store.checkReady(),
    };
  } catch (error) {
    await tasks.close();
    await store.close();
    throw error;
  }
}

function openTasks({ tasks }: Settings, log: Log): TaskHost {
  return openTaskHost({ ...tasks, log });
}
