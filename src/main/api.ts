import { createServer } from "node:net";
import type { Registry } from "prom-client";
import { openInspector } from "../connectors/index.ts";
import { buildServer } from "../control-plane/server.ts";
import type { Log } from "../observability/log.ts";
import { createRegistry } from "../observability/registry.ts";
import { reportStuckBackends } from "../observability/stuck-backends.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import { openStore } from "./database.ts";
import { type Address, isPortTaken, portTaken } from "./port-taken.ts";
import { VERSION } from "./version.ts";

const STORE_CONNECTIONS = 10;

/** How long a source or a target may take for each check of a validation. */
const INSPECTION_TIMEOUT_MS = 3000;

export interface RunningPart {
  stop(): Promise<void>;
}

export async function startApi(
  settings: Settings,
  urls: DatabaseUrls,
  log: Log,
  registry: Registry = createRegistry(VERSION),
  /** Sources that the runner of this process prepares by itself. */
  ownConnections: readonly string[] = [],
): Promise<RunningPart & { url: string }> {
  const store = openStore(urls, "api", STORE_CONNECTIONS);
  const applicationName = "vitrina api inspect";
  const inspector = openInspector({
    sources: settings.sources(urls),
    reading: {
      applicationName,
      allowedSchemas: settings.sourceSchemas,
      onStuck: reportStuckBackends(log, registry),
    },
    sinks: settings.sinks,
    looking: { writerUrl: urls.writer, loaderUrl: urls.loader, applicationName, timeoutMs: INSPECTION_TIMEOUT_MS },
    ownConnections,
  });
  const server = await buildServer({
    store,
    targets: settings.targets,
    inspector,
    previewTimeoutMs: settings.previewTimeoutMs,
    log,
    version: VERSION,
    api: settings.api,
    registry,
  });
  const stop = async (): Promise<void> => {
    await server.close();
    await store.close();
  };
  try {
    await store.checkReady();
    const url = await server.listen({ host: settings.api.host, port: settings.api.port });
    log.info({ url }, "api started");
    return { url, stop };
  } catch (error) {
    await stop();
    throw isPortTaken(error) ? portTaken(settings.api) : error;
  }
}

/** Checked before anything is started, so that a taken port is reported at once. */
export async function requireFreePort({ host, port }: Address): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", (error) => reject(isPortTaken(error) ? portTaken({ host, port }) : error));
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}
