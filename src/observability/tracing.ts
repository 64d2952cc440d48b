import { setTimeout as delay } from "node:timers/promises";
import { type Tracer, trace } from "@opentelemetry/api";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
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
  /** Sends the waiting spans, unless that takes too long. */
  close(): Promise<void>;
}

/** Without options the spans are the no-op ones of the OpenTelemetry API. */
export async function openTracing(options: TracingOptions | undefined, log: Log): Promise<Tracing> {
  if (options === undefined) return { tracer: trace.getTracer("vitrina"), close: async () => undefined };
  return exportSpans(options, log);
}

/** A slower collector counts as unreachable: it must not keep a runner from stopping. */
const EXPORT_TIMEOUT_MS = 3000;
const CLOSE_TIMEOUT_MS = 4000;

async function exportSpans({ url, headers, serviceName, version }: TracingOptions, log: Log): Promise<Tracing> {
  // Loaded only where spans are wanted: the SDK is large.
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  const { resourceFromAttributes } = await import("@opentelemetry/resources");
  const { BatchSpanProcessor, TracerProvider } = await import("@opentelemetry/sdk-trace");
  const exporter = tellingTrouble(
    new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: EXPORT_TIMEOUT_MS }),
    log,
  );
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": serviceName, "service.version": version }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  log.info({ url }, "spans are exported");
  return {
    tracer: provider.getTracer("vitrina", version),
    async close() {
      const timeout = new AbortController();
      const late = delay(CLOSE_TIMEOUT_MS, undefined, { signal: timeout.signal });
      await Promise.race([provider.shutdown(), late]).catch(() => undefined);
      timeout.abort();
    },
  };
}

/** Spans that cannot be sent are dropped; the log says so once, not every few seconds. */
function tellingTrouble(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed && !isFailing) log.warn({ err: result.error, spans: spans.length }, "spans cannot be exported");
        if (!failed && isFailing) log.info({}, "spans are exported again");
        isFailing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
