import { PassThrough } from "node:stream";
import type { Changes } from "../../domain/change.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import { withoutTaskWords } from "../auth/task-words.ts";

/** Whoever leaves so much unread is dropped, and comes back by its Last-Event-ID. */
const MOST_UNREAD_BYTES = 1024 * 1024;
/** What a browser waits before it comes back. */
const RETRY_MS = 2000;

export interface Event {
  readonly name: "ready" | "reset" | "pipeline" | "run";
  readonly data: object;
  /** None: it concerns everybody. */
  readonly pipelineId?: string;
}

/** For readers of every role: whoever may read what a task says about a run asks for that run. */
export function eventsOf(changes: Changes): Event[] {
  const { pipelines, runs } = withoutTaskWords(changes);
  return [
    ...pipelines.map((pipeline) => ({ name: "pipeline", data: pipeline, pipelineId: pipeline.id }) as const),
    ...runs.map((run) => ({ name: "run", data: run, pipelineId: run.pipeline_id }) as const),
  ];
}

/** Server-sent events for one reader. */
export class EventStream {
  readonly output = new PassThrough();
  readonly #pipelineId: PipelineId | null;

  /** `null`: all pipelines. */
  constructor(pipelineId: PipelineId | null) {
    this.#pipelineId = pipelineId;
    this.#write(`retry: ${RETRY_MS}\n\n`);
  }

  /** `point` is where the reader goes on after a lost connection. */
  send(point: string, events: readonly Event[]): void {
    const wanted = events.filter(({ pipelineId }) => pipelineId === undefined || this.#wants(pipelineId));
    const texts = wanted.map(({ name, data }) => `id: ${point}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    if (texts.length > 0) this.#write(texts.join(""));
  }

  /** A comment: it keeps proxies from closing a connection that seems dead. */
  giveSignOfLife(): void {
    this.#write(": alive\n\n");
  }

  end(): void {
    this.output.end();
  }

  #wants(pipelineId: string): boolean {
    return this.#pipelineId === null || this.#pipelineId === pipelineId;
  }

  #write(text: string): void {
    if (!this.output.writable) return;
    this.output.write(text);
    if (this.output.writableLength + this.output.readableLength > MOST_UNREAD_BYTES) this.output.destroy();
  }
}
