import { setTimeout as delay } from "node:timers/promises";
import type { ApiClient } from "./api-client.ts";
import { mayPass } from "./poll.ts";

export interface ApiEvent {
  readonly name: string;
  readonly data: unknown;
}

const COME_BACK_MS = 2000;

/** Every event as it comes. After a lost connection it goes on where it was. */
export async function* watchEvents(
  api: ApiClient,
  pipeline: string | undefined,
  say: (sentence: string) => void,
): AsyncGenerator<ApiEvent> {
  const input = { query: pipeline === undefined ? {} : { pipeline } };
  let lastId: string | undefined;
  for (let isFirst = true; ; isFirst = false) {
    try {
      const headers = lastId === undefined ? {} : { "last-event-id": lastId };
      for await (const { id, event } of parseEvents(api.stream("watchEvents", input, headers))) {
        lastId = id ?? lastId;
        if (event !== undefined) yield event;
      }
    } catch (error) {
      if (isFirst || !mayPass(error)) throw error;
    }
    say("The stream has ended; connecting again.");
    await delay(COME_BACK_MS);
  }
}

/** Server-sent events as this API sends them: each with one line of JSON. */
async function* parseEvents(chunks: AsyncIterable<string>): AsyncGenerator<{ id?: string; event?: ApiEvent }> {
  let rest = "";
  for await (const chunk of chunks) {
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop() ?? "";
    yield* blocks.map(parseEvent);
  }
}

function parseEvent(block: string): { id?: string; event?: ApiEvent } {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
  const [id, name, data] = [fields.get("id"), fields.get("event"), fields.get("data")];
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && data !== undefined && { event: { name, data: JSON.parse(data) } }),
  };
}
