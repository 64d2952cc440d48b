import { Argument, type Command } from "commander";
import type { ApiAnswer, Input } from "../api-client.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { confirmed } from "../confirm.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { localTime } from "../words.ts";

type State = ApiAnswer<"getPipelineState">;

const CHANGES = ["reset", "keep", "set"] as const;

interface StateOptions {
  readonly yes?: boolean;
  readonly id?: string;
}

const MEANING = `
Changes:
  reset  forget the position: the next run reads everything
  keep   keep it even though the query or the target has changed
  set    start the next incremental run at a value`;

export function addStateCommand(program: Command): void {
  program
    .command("state")
    .argument("<name>", "name or id of the pipeline")
    .addArgument(new Argument("[change]", "what to do with the position (default: show it)").choices(CHANGES))
    .argument("[value]", "for set: a value of the incremental key, as PostgreSQL prints it")
    .description("show or change the position up to which a pipeline has read")
    .option("--id <value>", "for set: a value of the incremental id key; that row itself counts as read")
    .option("-y, --yes", "do not ask before a change")
    .addHelpText("after", MEANING)
    .action(withCli(state));
}

async function state(
  cli: Cli,
  id: string,
  change: (typeof CHANGES)[number] | undefined,
  value: string | undefined,
  options: StateOptions,
): Promise<void> {
  if ((change === "set") !== (value !== undefined) || (change !== "set" && options.id !== undefined)) {
    throw new CliFailure(EXIT.usage, "set needs a value; no other change takes one.", [
      'Write, for example: vitrina state my_mart set "2026-01-31 12:00:00+00".',
    ]);
  }
  const position = { last_processed_value: value ?? "", last_processed_id: options.id ?? null };
  const answer =
    change === undefined
      ? await cli.api.request("getPipelineState", { params: { id } })
      : await confirmed(cli, options.yes ?? false, (confirm) => changeState(cli, { id, change, confirm, position }));
  cli.show(answer, () => stateTable(answer));
}

interface Change {
  readonly id: string;
  readonly change: (typeof CHANGES)[number];
  readonly confirm: "true" | "false";
  readonly position: Input<"setPipelineState">["body"];
}

function changeState({ api }: Cli, { id, change, confirm, position: body }: Change): Promise<State> {
  const input = { params: { id }, query: { confirm } };
  switch (change) {
    case "reset":
      return api.request("resetPipelineState", input);
    case "keep":
      return api.request("keepPipelineState", input);
    case "set":
      return api.request("setPipelineState", { ...input, body });
  }
}

function stateTable(state: State): Table {
  const { last_processed_value: value, last_processed_id: id, scan_position: position } = state;
  return {
    columns: [{ title: "VALUE" }, { title: "ID" }, { title: "UNFINISHED AT" }, { title: "BATCHES" }, { title: "WHEN" }],
    rows: [
      [
        value ?? "none",
        id ?? "",
        position?.join(", ") ?? "",
        String(state.batches_committed),
        state.updated_at === null ? "never" : localTime(state.updated_at),
      ],
    ],
  };
}
