import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

type Value = string | number | boolean;

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly startNs: bigint;
  readonly endNs: bigint;
  /** 2 means an error. */
  readonly status: { readonly code?: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, Value>>;
  readonly resource: Readonly<Record<string, Value>>;
}

/** Takes spans as a collector of OpenTelemetry does: OTLP as JSON over HTTP. */
export interface SpanCollector {
  readonly url: string;
  readonly spans: Span[];
  /** As it was sent. */
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: string }[];
  close(): Promise<void>;
}

interface RawAttribute {
  readonly key: string;
  readonly value: { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
}

interface RawSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { code?: number; message?: string };
  readonly attributes: RawAttribute[];
}

interface RawExport {
  readonly resourceSpans: {
    readonly resource: { readonly attributes: RawAttribute[] };
    readonly scopeSpans: { readonly spans: RawSpan[] }[];
  }[];
}

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: Span[] = [];
  const requests: SpanCollector["requests"] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    requests.push({ path: request.url ?? "", headers: request.headers, body });
    spans.push(...spansOf(JSON.parse(body) as RawExport));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function spansOf({ resourceSpans }: RawExport): Span[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap((scope) => scope.spans)
      .map((span) => ({
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        status: span.status,
        attributes: valuesOf(span.attributes),
        resource: valuesOf(resource.attributes),
      })),
  );
}

function valuesOf(attributes: readonly RawAttribute[]): Record<string, Value> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
      key,
      stringValue ?? doubleValue ?? boolValue ?? Number(intValue),
    ]),
  );
}
