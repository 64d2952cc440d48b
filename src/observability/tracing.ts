import { type Tracer, trace } from "@opentelemetry/api";
import type { Log } from "./log.ts";

export interface TracingOptions {
  /** Where spans are sent: the traces endpoint of an OTLP collector that takes JSON over HTTP. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly version: string;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what waits, unless that takes too long. */
  close(): Promise<void>;
}

/** Without options the spans are those of the API that do nothing, and the SDK is not even loaded. */
export async function openTracing(options: TracingOptions | undefined, log: Log): Promise<Tracing> {
  if (options === undefined) return { tracer: trace.getTracer("vitrina"), close: async () => undefined };
  const { exportSpans } = await import("./export-spans.ts");
  return exportSpans(options, log);
}
