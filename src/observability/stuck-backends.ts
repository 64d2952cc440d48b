import { Counter, type Registry } from "prom-client";
import type { Log } from "./log.ts";

/** A process of a source's server that answered neither in time nor to being ended. */
export interface StuckBackend {
  readonly pid: number;
  /** As pg_stat_activity shows it. */
  readonly applicationName: string;
}

const COUNTER_NAME = "vitrina_source_backends_stuck_total";

/** Tells the operator, who alone can do something about it. */
export function reportStuckBackends(log: Log, registry: Registry): (backend: StuckBackend) => void {
  // The API and a runner of one process share it.
  const known = registry.getSingleMetric(COUNTER_NAME) as Counter | undefined;
  const counter =
    known ??
    new Counter({
      name: COUNTER_NAME,
      help: "Backends of sources that were given up because they answered neither in time nor to being ended.",
      registers: [registry],
    });
  return ({ pid, applicationName }) => {
    counter.inc();
    const message = "a backend of the source does not stop: end it on the server, or restart the server";
    log.error({ backend_pid: pid, application_name: applicationName }, message);
  };
}
