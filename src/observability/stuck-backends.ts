import { Counter, type Registry } from "prom-client";
import type { Log } from "./log.ts";

/** A server process of a source that neither answered in time nor could be terminated. */
export interface StuckBackend {
  readonly pid: number;
  /** As pg_stat_activity shows it. */
  readonly applicationName: string;
}

const COUNTER_NAME = "vitrina_source_backends_stuck_total";

/** Tells the operator, the only one who can do something about it. */
export function reportStuckBackends(log: Log, registry: Registry): (backend: StuckBackend) => void {
  // The API and a runner in one process share it.
  const known = registry.getSingleMetric(COUNTER_NAME) as Counter | undefined;
  const counter =
    known ??
    new Counter({
      name: COUNTER_NAME,
      help: "Backends of sources that were given up because they neither answered in time nor could be terminated.",
      registers: [registry],
    });
  return ({ pid, applicationName }) => {
    counter.inc();
    const message = "a backend of the source does not stop: end it on the server, or restart the server";
    log.error({ backend_pid: pid, application_name: applicationName }, message);
  };
}
