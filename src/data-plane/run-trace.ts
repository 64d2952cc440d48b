import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Claim } from "../meta-store/ports/run-queue.ts";

/** The span of one run, and those of its batches below it. Ids, counts and codes only: no values, no SQL. */
export class RunTrace {
  readonly #tracer: Tracer;
  readonly #span: Span;
  /** Passed explicitly, so that nothing has to track every promise of the process. */
  readonly #context: Context;
  readonly #ids: Attributes;

  constructor(tracer: Tracer, { kind, pipeline, runId, attempt, trigger }: Claim) {
    this.#tracer = tracer;
    this.#ids = { "vitrina.pipeline.id": pipeline.id, "vitrina.run.id": runId };
    const more = {
      "vitrina.pipeline.name": pipeline.name,
      "vitrina.run.kind": kind,
      "vitrina.run.attempt": attempt,
      "vitrina.run.trigger": trigger,
    };
    this.#span = tracer.startSpan("run", { attributes: { ...this.#ids, ...more } }, ROOT_CONTEXT);
    this.#context = trace.setSpan(ROOT_CONTEXT, this.#span);
  }

  /** Undefined while tracing is off. */
  get traceId(): string | undefined {
    return this.#span.isRecording() ? this.#span.spanContext().traceId : undefined;
  }

  /** A batch that has ended. `startedAt` is a time of `performance.now()`. */
  batch(startedAt: number, facts: Attributes, error?: string): void {
    if (!this.#span.isRecording()) return;
    const attributes = { ...this.#ids, ...prefixed("vitrina.batch", facts) };
    const span = this.#tracer.startSpan("batch", { startTime: startedAt, attributes }, this.#context);
    markFailed(span, error);
    span.end(performance.now());
  }

  end(facts: Attributes, error?: string): void {
    this.#span.setAttributes(prefixed("vitrina.run", facts));
    markFailed(this.#span, error);
    this.#span.end();
  }
}

function markFailed(span: Span, error: string | undefined): void {
  if (error === undefined) return;
  span.setAttribute("error.type", error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: error });
}

function prefixed(prefix: string, facts: Attributes): Attributes {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [`${prefix}.${name}`, value]));
}
