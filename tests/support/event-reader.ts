import { until } from "./until.ts";

interface SeenEvent {
  readonly id: string;
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any event.
  readonly data: any;
}

/** Reads server-sent events as a browser would. */
export interface EventReader {
  readonly headers: Headers;
  readonly events: SeenEvent[];
  /** Everything as it came, comments included. */
  text(): string;
  /** True once the other side has ended the stream. */
  ended(): boolean;
  /** Waits for an event that fits, the first one that came. */
  find(what: string, fits: (event: SeenEvent) => boolean): Promise<SeenEvent>;
  close(): void;
}

export async function readEvents(url: string, lastEventId?: string): Promise<EventReader> {
  const abort = new AbortController();
  const response = await fetch(url, {
    signal: abort.signal,
    headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
  });
  if (response.status !== 200 || response.body === null) throw new Error(`${response.status} ${await response.text()}`);
  const events: SeenEvent[] = [];
  let [text, taken, ended] = ["", 0, false];
  const take = (): void => {
    for (let end = text.indexOf("\n\n", taken); end >= 0; end = text.indexOf("\n\n", taken)) {
      const fields = text
        .slice(taken, end)
        .split("\n")
        .map((line) => line.split(/: (.*)/s));
      const { id = "", event, data = "{}" } = Object.fromEntries(fields);
      if (event !== undefined) events.push({ id, name: event, data: JSON.parse(data) });
      taken = end + 2;
    }
  };
  const read = async (body: ReadableStream<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      take();
    }
  };
  void read(response.body)
    .catch(() => undefined)
    .finally(() => {
      ended = true;
    });
  return {
    headers: response.headers,
    events,
    text: () => text,
    ended: () => ended,
    find: (what, fits) => until(what, () => events.find(fits)),
    close: () => abort.abort(),
  };
}
