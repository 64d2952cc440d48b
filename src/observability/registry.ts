import { collectDefaultMetrics, Gauge, Registry } from "prom-client";

/** Gauges of prom-client that are named like counters; promtool refuses such names. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

/** The metrics of one process: those about the process itself, and those that its parts add. */
export function createRegistry(version: string): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  new Gauge({
    name: "vitrina_build_info",
    help: "Always 1; the label holds the version.",
    labelNames: ["version"],
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}
