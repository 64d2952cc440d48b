import { type Command, InvalidArgumentError, Option } from "commander";
import { isHttpUrl } from "../settings/cli-settings.ts";
import { addApplyCommands } from "./commands/apply.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addEventsCommand } from "./commands/events.ts";
import { addLogsCommand } from "./commands/logs.ts";
import { addCancelCommand, addPauseCommand } from "./commands/pause-and-cancel.ts";
import { addPipelineCommands } from "./commands/pipelines.ts";
import { addPreviewCommand } from "./commands/preview.ts";
import { addReconcileCommand } from "./commands/reconcile.ts";
import { addRejectsCommand } from "./commands/rejects.ts";
import { addRestorePreviousCommand, addRunCommand } from "./commands/run.ts";
import { addRunnerCommands } from "./commands/runners.ts";
import { addRunsCommand } from "./commands/runs.ts";
import { addStateCommand } from "./commands/state.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addValidateCommand } from "./commands/validate.ts";
import { addVersionCommands } from "./commands/versions.ts";

const EXIT_CODES = `
Exit codes:
  0    done
  1    failed: refused by the API, or a run that did not succeed
  3    the API cannot be reached
  4    not allowed: no login, or a role that may not do this
  64   wrong usage: unknown command or option, missing argument
  130  Ctrl-C`;

/** The commands that call the API, and the options that they share. */
export function addApiCommands(program: Command): void {
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
  addPipelineCommands(program);
  addApplyCommands(program);
  addStatusCommand(program);
  addRunCommand(program);
  addPauseCommand(program);
  addCancelCommand(program);
  addRunsCommand(program);
  addLogsCommand(program);
  addValidateCommand(program);
  addPreviewCommand(program);
  addReconcileCommand(program);
  addRejectsCommand(program);
  addVersionCommands(program);
  addRestorePreviousCommand(program);
  addStateCommand(program);
  addRunnerCommands(program);
  addEventsCommand(program);
  addAuditCommand(program);
}

function apiUrl(text: string): string {
  if (isHttpUrl(text)) return text;
  throw new InvalidArgumentError("It must be an http or https URL such as http://127.0.0.1:8000.");
}
