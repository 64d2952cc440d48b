import { openConnectors } from "../connectors/index.ts";
import { Runner } from "../data-plane/runner.ts";
import { leaseTiming } from "../domain/lease.ts";
import { enableFaults } from "../observability/fault-points.ts";
import type { Log } from "../observability/log.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import type { RunningPart } from "./api.ts";
import { openStore } from "./database.ts";
import { VERSION } from "./version.ts";

export async function startRunner(settings: Settings, urls: DatabaseUrls, log: Log): Promise<RunningPart> {
  if (settings.faults !== undefined) enableFaults(settings.faults);
  const { concurrency, pollMs, leaseMs, readTimeoutMs, stopTimeoutMs } = settings.runner;
  const store = openStore(urls, "runner", concurrency + 2);
  const timing = leaseTiming(leaseMs);
  const sourceUrls = new Map([["main", urls.reader], ...settings.sourceUrls]);
  const runner = new Runner({
    store,
    log,
    version: VERSION,
    concurrency,
    pollMs,
    leaseMs,
    stopTimeoutMs,
    targets: settings.targets,
    tasks: {
      load: async () => undefined,
      list: () => [],
      close: async () => undefined,
      open: async () => {
        throw new Error("tasks");
      },
    },
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
      },
    }),
  });
  const stop = async (): Promise<void> => {
    await runner.stop();
    await store.close();
  };
  try {
    await runner.start();
    return { stop };
  } catch (error) {
    await store.close();
    throw error;
  }
}
