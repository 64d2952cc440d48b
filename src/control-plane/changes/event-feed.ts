import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Changes } from "../../domain/change.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { ChangeFeed } from "../../meta-store/ports/changes.ts";
import type { Log } from "../../observability/log.ts";
import { withoutTaskWords } from "../auth/task-words.ts";
import type { ChangeListener, Listening } from "./change-listener.ts";

const MOST_STREAMS = 100;
/** Batches send no notification, so the progress of runs is polled while there are any. */
const PROGRESS_EVERY_MS = 1000;
/** Changes come in groups: one query serves all of them. */
const GATHER_MS = 100;
const SIGN_OF_LIFE_MS = 15_000;
/** Access is checked when a stream is opened; it is closed after this time, and checked again when it comes back. */
const LONGEST_STREAM_MS = 60 * 60 * 1000;

/**
 * Tells all streams what changed. One look at the meta-store serves them all; while nobody listens there is none. What
 * is sent is the latest state of each thing, not every step on the way.
 */
export class EventFeed {
  readonly #store: ChangeFeed;
  readonly #listener: ChangeListener;
  readonly #log: Log;
  readonly #streams = new Set<EventStream>();
  /** What was last sent about each pipeline and run, so that nothing is sent twice in a row. */
  #told = new Map<string, string>();
  #point: string | null = null;
  #runsUnderWay = false;
  /** A stream that catches up must not overtake the others, so queries take turns. */
  #turn: Promise<unknown> = Promise.resolve();
  #serving = false;
  #listening: Listening | undefined;

  constructor(store: ChangeFeed, listener: ChangeListener, log: Log) {
    this.#store = store;
    this.#listener = listener;
    this.#log = log;
  }

  /** Begins with everything that changed since `lastEventId`; without one, with the runs under way. */
  async open(stream: EventStream, lastEventId: string | undefined): Promise<void> {
    if (this.#streams.size >= MOST_STREAMS || this.#listener.closed) {
      throw new VitrinaError("TOO_MANY_STREAMS", `${this.#streams.size} event streams are open; no more are served.`);
    }
    this.#streams.add(stream);
    const expiry = setTimeout(() => stream.end(), LONGEST_STREAM_MS).unref();
    stream.output.once("close", () => {
      clearTimeout(expiry);
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.#listening?.wake();
    });
    try {
      await this.#takeTurn(() => this.#catchUp(stream, lastEventId));
    } catch (error) {
      stream.output.destroy();
      throw error;
    }
    if (!this.#serving) void this.#serve();
  }

  close(): void {
    for (const stream of this.#streams) stream.end();
  }

  async #catchUp(stream: EventStream, lastEventId: string | undefined): Promise<void> {
    const isPoint = lastEventId === undefined || /^\d{1,18}$/.test(lastEventId);
    const changes = await this.#store.since(isPoint ? (lastEventId ?? null) : null);
    const first: SentEvent = { name: isPoint && changes.complete ? "ready" : "reset", data: {} };
    stream.send(changes.point, [first, ...eventsOf(changes)]);
    if (this.#serving) return;
    this.#point = changes.point;
    this.#told.clear();
  }

  /** Until the last stream is gone. */
  async #serve(): Promise<void> {
    this.#serving = true;
    const signs = setInterval(() => {
      for (const stream of this.#streams) stream.giveSignOfLife();
    }, SIGN_OF_LIFE_MS);
    try {
      this.#listening = await this.#listener.listen(null);
      while (this.#streams.size > 0 && !this.#listener.closed) {
        await this.#takeTurn(() => this.#look());
        await this.#listening.next(this.#runsUnderWay ? PROGRESS_EVERY_MS : SIGN_OF_LIFE_MS);
        await delay(GATHER_MS);
      }
    } catch (error) {
      // The readers come back by themselves, from the last event they got.
      this.#log.warn({ err: error }, "event streams cut");
      for (const { output } of this.#streams) output.destroy();
    } finally {
      clearInterval(signs);
      this.#listening?.stop();
      this.#serving = false;
    }
    // Somebody may have come while the last one left.
    if (this.#streams.size > 0 && !this.#listener.closed) void this.#serve();
  }

  async #look(): Promise<void> {
    const changes = await this.#store.since(this.#point);
    const events = changes.complete ? eventsOf(changes) : [{ name: "reset", data: {} } as const];
    const known = this.#told;
    // What is no longer among the changes lies before the point: if it comes up again, it has changed.
    this.#told = new Map(events.map((event) => [keyOf(event), meaningOf(event)]));
    const news = events.filter((event) => known.get(keyOf(event)) !== meaningOf(event));
    for (const stream of this.#streams) stream.send(changes.point, news);
    this.#point = changes.point;
    this.#runsUnderWay = changes.runs.some(({ status }) => status === "RUNNING");
  }

  #takeTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}

function keyOf({ name, data }: SentEvent): string {
  return `${name} ${"id" in data ? data.id : ""}`;
}

/** The speed of a run is different every time, and is not news by itself. */
function meaningOf({ data }: SentEvent): string {
  return JSON.stringify({ ...data, rows_per_second: undefined });
}

/** A reader that leaves this much unread is dropped, and continues from its Last-Event-ID. */
const MOST_UNREAD_BYTES = 1024 * 1024;
/** What a browser waits before it comes back. */
const COME_BACK_MS = 2000;

export interface SentEvent {
  readonly name: "ready" | "reset" | "pipeline" | "run";
  readonly data: object;
  /** Undefined: it concerns all streams. */
  readonly pipelineId?: string;
}

/** For readers of every role: those who may read a task's messages about a run ask for that run. */
export function eventsOf(changes: Changes): SentEvent[] {
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
    this.#write(`retry: ${COME_BACK_MS}\n\n`);
  }

  /** `point` is where the reader goes on after a lost connection. */
  send(point: string, events: readonly SentEvent[]): void {
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
