import type { Registry } from "prom-client";
import { openConnectors } from "../connectors/index.ts";
import { slotsFor } from "../data-plane/manager.ts";
import type { EngineParts } from "../data-plane/run-context.ts";
import { Runner } from "../data-plane/runner.ts";
import { leaseTiming } from "../domain/lease.ts";
import { enableFaults } from "../observability/fault-points.ts";
import type { Log } from "../observability/log.ts";
import { createRegistry } from "../observability/registry.ts";
import { RunLogs } from "../observability/run-logs.ts";
import { createRunnerMetrics } from "../observability/runner-metrics.ts";
import { reportStuckBackends } from "../observability/stuck-backends.ts";
import { openTracing } from "../observability/tracing.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import { openTaskHost } from "../tasks/open-task-host.ts";
import type { TaskHost } from "../tasks/task.ts";
import type { RunningPart } from "./api.ts";
import { openStore } from "./database.ts";
import { VERSION } from "./version.ts";

interface RunningRunner extends RunningPart {
  /** How long ago its loop last came round. */
  silentMs(): number;
  checkReady(): Promise<void>;
}

export async function startRunner(
  settings: Settings,
  urls: DatabaseUrls,
  log: Log,
  registry: Registry = createRegistry(VERSION),
  installChanges?: EngineParts["installChanges"],
): Promise<RunningRunner> {
  if (settings.faults !== undefined) enableFaults(settings.faults);
  const { concurrency, pollMs, leaseMs, readTimeoutMs, batchBytes, stopTimeoutMs, runHistoryDays, retry } =
    settings.runner;
  // One connection for each pipeline, three for the runner itself, and one for the logs of the runs.
  const store = openStore(urls, "runner", concurrency + 4);
  const tracing = await openTracing(settings.tracing && { ...settings.tracing, version: VERSION }, log);
  const runLogs = new RunLogs({ level: settings.runLogLevel, log, write: store.runLogs.append });
  const timing = leaseTiming(leaseMs);
  const tasks = openTasks(settings, log);
  const connectors = openConnectors({
    sources: settings.sources(urls),
    reading: {
      applicationName: "vitrina runner read",
      allowedSchemas: settings.sourceSchemas,
      readTimeoutMs,
      batchBytes,
      onStuck: reportStuckBackends(log, registry),
    },
    sinks: settings.sinks,
    writing: {
      writerUrl: urls.writer,
      loaderUrl: urls.loader,
      applicationName: "vitrina runner write",
      lockTimeoutMs: timing.lockTimeoutMs,
      idleTimeoutMs: timing.idleTimeoutMs,
      statementTimeoutMs: readTimeoutMs,
    },
  });
  const runner = new Runner({
    store,
    log,
    runLogs,
    tracer: tracing.tracer,
    version: VERSION,
    concurrency,
    pollMs,
    leaseMs,
    stopTimeoutMs,
    runHistoryDays,
    targets: settings.targets,
    tasks,
    installChanges,
    retry,
    observer: createRunnerMetrics(registry, slotsFor(concurrency)),
    connectors,
  });
  const stop = async (): Promise<void> => {
    await runner.stop();
    await connectors.close();
    await tasks.close();
    await Promise.all([runLogs.close(), tracing.close()]);
    await store.close();
  };
  try {
    await tasks.load();
    await runner.start();
    return { stop, silentMs: () => runner.silentMs, checkReady: () => store.checkReady() };
  } catch (error) {
    await tasks.close();
    await tracing.close();
    await store.close();
    throw error;
  }
}

function openTasks({ tasks }: Settings, log: Log): TaskHost {
  return openTaskHost({ ...tasks, log });
}
