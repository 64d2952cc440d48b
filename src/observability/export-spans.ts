import { setTimeout as delay } from "node:timers/promises";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Log } from "./log.ts";
import type { Tracing, TracingOptions } from "./tracing.ts";

/** A collector that is slower is as good as away: it must not keep a runner from stopping. */
const EXPORT_TIMEOUT_MS = 3000;
const CLOSE_TIMEOUT_MS = 4000;

/** Loads the SDK of OpenTelemetry, so it is imported only where spans are wanted. */
export function exportSpans({ url, headers, serviceName, version }: TracingOptions, log: Log): Tracing {
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
