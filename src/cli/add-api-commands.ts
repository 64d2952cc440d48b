import { type Command, InvalidArgumentError, Option } from "commander";
import { isHttpUrl } from "../settings/cli-settings.ts";

const EXIT_CODES = `
Exit codes:
  0    done
  1    failed: refused by the API, or a run that did not succeed
  3    the API cannot be reached
  4    not allowed: no login, or a role that may not do this
  64   wrong usage: unknown command or option, missing argument
  130  Ctrl-C`;

type AddCommands = (program: Command) => void;

/** In the order of the help. A command starts quickly because it loads no other. */
const COMMANDS: readonly { readonly names: readonly string[]; load(): Promise<AddCommands> }[] = [
  { names: ["list", "get"], load: async () => (await import("./commands/pipelines.ts")).addPipelineCommands },
  { names: ["apply", "delete"], load: async () => (await import("./commands/apply.ts")).addApplyCommands },
  { names: ["status"], load: async () => (await import("./commands/status.ts")).addStatusCommand },
  { names: ["run"], load: async () => (await import("./commands/run.ts")).addRunCommand },
  { names: ["pause"], load: async () => (await import("./commands/pause-and-cancel.ts")).addPauseCommand },
  { names: ["cancel"], load: async () => (await import("./commands/pause-and-cancel.ts")).addCancelCommand },
  { names: ["runs"], load: async () => (await import("./commands/runs.ts")).addRunsCommand },
  { names: ["logs"], load: async () => (await import("./commands/logs.ts")).addLogsCommand },
  { names: ["validate"], load: async () => (await import("./commands/validate.ts")).addValidateCommand },
  { names: ["preview"], load: async () => (await import("./commands/preview.ts")).addPreviewCommand },
  { names: ["reconcile"], load: async () => (await import("./commands/reconcile.ts")).addReconcileCommand },
  { names: ["rejects"], load: async () => (await import("./commands/rejects.ts")).addRejectsCommand },
  {
    names: ["versions", "diff", "restore"],
    load: async () => (await import("./commands/versions.ts")).addVersionCommands,
  },
  { names: ["restore-previous"], load: async () => (await import("./commands/run.ts")).addRestorePreviousCommand },
  { names: ["state"], load: async () => (await import("./commands/state.ts")).addStateCommand },
  { names: ["follow"], load: async () => (await import("./commands/follow.ts")).addFollowCommand },
  { names: ["graph"], load: async () => (await import("./commands/graph.ts")).addGraphCommand },
  { names: ["runners", "tasks"], load: async () => (await import("./commands/runners.ts")).addRunnerCommands },
  { names: ["events"], load: async () => (await import("./commands/events.ts")).addEventsCommand },
  { names: ["audit"], load: async () => (await import("./commands/audit.ts")).addAuditCommand },
];

/** The commands that call the API, and the options that they share; all of them unless `wanted` is the name of one. */
export async function addApiCommands(program: Command, wanted: string | undefined): Promise<void> {
  program
    .addOption(
      new Option(
        "--api <url>",
        "address of the API; can also be set with VITRINA_API_URL (default: http://127.0.0.1:8000)",
      ).argParser(apiUrl),
    )
    .option("--key-file <file>", "file that holds the API key; VITRINA_API_KEY can hold the key itself")
    .addOption(
      new Option("-o, --output <form>", "table, or the API's answer as JSON")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText("after", EXIT_CODES);
  // For the commands below: only they have these options.
  program.configureHelp({ showGlobalOptions: true }).commandsGroup("Pipelines, through the API:");
  const named = COMMANDS.filter(({ names }) => names.some((name) => name === wanted));
  for (const { load } of named.length === 0 ? COMMANDS : named) (await load())(program);
}

function apiUrl(text: string): string {
  if (isHttpUrl(text)) return text;
  throw new InvalidArgumentError("It must be an http or https URL such as http://127.0.0.1:8000.");
}
