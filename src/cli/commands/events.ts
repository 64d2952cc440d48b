import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { ApiClient } from "../api-client.ts";
import type { Pipeline, Run } from "../api-types.ts";
import { type Cli, withCli } from "../cli.ts";
import { runText } from "../follow-run.ts";
import { mayPass } from "../poll.ts";
import { printable } from "../terminal-text.ts";

export function addEventsCommand(program: Command): void {
  program
    .command("events")
    .argument("[name]", "name or id of a pipeline (default: all)")
    .description("show events as they happen, until Ctrl-C; with -o json one document per line")
    .action(withCli(events));
}

async function events(cli: Cli, pipeline: string | undefined): Promise<void> {
  for await (const event of watchEvents(cli.api, pipeline, cli.terminal.say)) {
    const text = cli.isJson ? JSON.stringify(event) : eventText(event);
    if (text !== undefined) cli.terminal.print(printable(text));
  }
}

function eventText({ name, data }: ApiEvent): string | undefined {
  switch (name) {
    case "pipeline": {
      const pipeline = data as Pick<Pipeline, "name" | "status">;
      return `${pipeline.name}: is ${pipeline.status}`;
    }
    case "run": {
      const run = data as Run;
      return `${run.pipeline_name}: run ${run.status}  ${runText(run)}`;
    }
    case "reset":
      return "Some events may be missing.";
    default:
      return undefined;
  }
}

interface ApiEvent {
  readonly name: string;
  readonly data: unknown;
}

const COME_BACK_MS = 2000;

/** Every event as it arrives. After a lost connection it continues where it left off. */
async function* watchEvents(
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
