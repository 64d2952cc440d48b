import { type Command, Option } from "commander";
import type { ApiAnswer } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { poll } from "../poll.ts";
import { printable } from "../terminal-text.ts";
import { localTime } from "../words.ts";

type LogPage = ApiAnswer<"getRunLog">;
type Line = LogPage["items"][number];
type RunAnswer = ApiAnswer<"getRun">;

interface LogsOptions {
  readonly run?: string;
  readonly level?: Line["level"];
  readonly follow?: boolean;
}

const LINES_PER_PAGE = 200;
/** Shorter than the timeouts of common proxies. */
const WAIT = "20s";

export function addLogsCommand(program: Command): void {
  program
    .command("logs")
    .argument("<name>", "name or id of the pipeline")
    .description(
      "show the log of the last run that writes to the target, or of the run given with --run; with -o json one document per line",
    )
    .option("--run <id>", "the id of a run, as runs -o json shows it")
    .addOption(
      new Option("--level <level>", "only lines of this level or more severe").choices([
        "debug",
        "info",
        "warn",
        "error",
      ]),
    )
    .option("-f, --follow", "follow the log until the run has ended, including retries")
    .action(withCli(logs));
}

async function logs(cli: Cli, id: string, options: LogsOptions): Promise<void> {
  let run = options.run === undefined ? await lastRun(cli, id) : await readRun(cli, id, options.run);
  await showLog(cli, run, options);
  while (options.follow === true) {
    const next = await nextAttempt(cli, run);
    if (next === undefined) return;
    run = next;
    await showLog(cli, run, options);
  }
}

async function lastRun(cli: Cli, id: string): Promise<RunAnswer> {
  const { last_run: run } = await cli.api.request("getPipelineStatus", { params: { id } });
  if (run !== null) return run;
  throw new CliFailure(EXIT.failed, `${id} has never run, so it has no log.`, [`Run it with vitrina run ${id}.`]);
}

function readRun(cli: Cli, id: string, run_id: string): Promise<RunAnswer> {
  return cli.api.request("getRun", { params: { id, run_id } });
}

/** All existing lines, and with `follow` also new ones until the log ends. */
async function showLog(
  cli: Cli,
  { pipeline_id: id, id: run_id }: RunAnswer,
  { level, follow }: LogsOptions,
): Promise<void> {
  let after = "0";
  const read = (): Promise<LogPage> =>
    cli.api.request("getRunLog", {
      params: { id, run_id },
      query: { limit: LINES_PER_PAGE, after, ...(level && { level }), ...(follow && { wait: WAIT }) },
    });
  await poll(cli.terminal.say, {
    look: async () => {
      for (;;) {
        const { items, next, over } = await read();
        for (const line of items) cli.terminal.print(printable(cli.isJson ? JSON.stringify(line) : lineText(line)));
        after = String(items.at(-1)?.id ?? after);
        if (next === null) return over;
      }
    },
    isOver: (over) => over || follow !== true,
  });
}

/** The next run for the same request, once there is one; undefined when the request is done. */
function nextAttempt(cli: Cli, { pipeline_id: id, id: runId, run_request }: RunAnswer): Promise<RunAnswer | undefined> {
  const isNext = (run: RunAnswer | null): run is RunAnswer => run !== null && run.id !== runId;
  return poll(cli.terminal.say, {
    look: () => cli.api.request("getPipelineStatus", { params: { id }, query: { run_request } }),
    isOver: ({ over, last_run }) => over || isNext(last_run),
  }).then(({ last_run }) => (isNext(last_run) ? last_run : undefined));
}

function lineText({ at, level, message, fields }: Line): string {
  const details = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  return `${localTime(at)}  ${level.toUpperCase().padEnd(5)}  ${[message, ...details].join("  ")}`;
}

function valueText(value: unknown): string {
  return typeof value === "string" && !/[\s"=]/.test(value) ? value : JSON.stringify(value);
}
