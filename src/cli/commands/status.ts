import type { Command } from "commander";
import { count, plural } from "../../domain/counted.ts";
import { allPages } from "../api-client.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { type StatusAnswer, waitingSentence } from "../follow-run.ts";
import { poll } from "../poll.ts";
import { age } from "../words.ts";

const QUESTIONS_AT_ONCE = 8;

export function addStatusCommand(program: Command): void {
  program
    .command("status")
    .argument("[name]", "name or id of a pipeline (default: all)")
    .description("show what pipelines are doing, and how their last runs ended")
    .action(withCli(status));
}

async function status(cli: Cli, id: string | undefined): Promise<void> {
  if (id !== undefined) {
    const one = await statusOf(cli, id);
    cli.show(one, () => statusTable([one]));
    sayErrors(cli, [one]);
    return;
  }
  const { items } = await allPages((query) => cli.api.request("listPipelines", { query }));
  const all: StatusAnswer[] = [];
  for (let from = 0; from < items.length; from += QUESTIONS_AT_ONCE) {
    const some = items.slice(from, from + QUESTIONS_AT_ONCE);
    all.push(...(await Promise.all(some.map((pipeline) => patientStatusOf(cli, pipeline.id)))));
  }
  cli.show({ items: all }, () => statusTable(all));
  sayErrors(cli, all);
}

function statusOf(cli: Cli, id: string): Promise<StatusAnswer> {
  return cli.api.request("getPipelineStatus", { params: { id } });
}

/** Many requests may hit the limit per minute; the rest are sent later. */
function patientStatusOf(cli: Cli, id: string): Promise<StatusAnswer> {
  return poll(cli.terminal.say, { look: () => statusOf(cli, id), isOver: () => true });
}

export function statusTable(all: readonly StatusAnswer[]): Table {
  return {
    columns: [
      { title: "NAME" },
      { title: "STATUS" },
      { title: "LAST RUN" },
      { title: "READ", align: "right" },
      { title: "WRITTEN", align: "right" },
      { title: "WHEN", align: "right" },
    ],
    rows: all.map(({ name, status, enabled, waiting, last_run: run }) => [
      name,
      `${status}${waiting === null ? "" : " (waiting)"}${enabled ? "" : " (disabled)"}`,
      ...(run === null
        ? ["never", "", "", ""]
        : [lastRun(run), count(run.rows_read), count(run.rows_written), age(run.finished_at ?? run.started_at)]),
    ]),
    whenEmpty: "There are no pipelines.",
  };
}

/** A run that succeeded may still have rejected rows. */
function lastRun({ status, rows_rejected }: NonNullable<StatusAnswer["last_run"]>): string {
  return rows_rejected === 0 ? status : `${status} (${count(rows_rejected)} rejected)`;
}

function sayErrors(cli: Cli, all: readonly StatusAnswer[]): void {
  if (cli.isJson) return;
  for (const { name, status, waiting, last_run: run } of all) {
    if (waiting !== null) cli.terminal.say(`${name} ${waitingSentence(waiting)}`);
    if (run !== null && run.rows_rejected > 0) {
      const [rejected, read] = [count(run.rows_rejected), plural(run.rows_read, "row")];
      cli.terminal.say(`${name}: the target refused ${rejected} of ${read}; vitrina rejects ${name} shows them.`);
    }
    if (status === "FAILED" && run?.error) cli.terminal.say(`${name}: ${run.error}`);
    for (const note of run?.notes ?? []) cli.terminal.say(`${name}: ${note}`);
    const repeated = run?.rows_deduplicated ?? 0;
    const skipped = plural(repeated, "row was", "rows were");
    if (repeated > 0) cli.terminal.say(`${name}: ${skipped} skipped: later rows have the same keys.`);
  }
}
