import type { Command } from "commander";
import { count, plural } from "../../domain/counted.ts";
import type { ApiAnswer } from "../api-client.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { EXIT, type ExitCode } from "../failure.ts";
import { interruptible, poll } from "../poll.ts";
import { openProgress } from "../progress.ts";

type ReconcileAnswer = ApiAnswer<"getReconcile">;

/** This many keys of each kind are printed; -o json has more. */
const LISTED_KEYS = 10;

export function addReconcileCommand(program: Command): void {
  program
    .command("reconcile")
    .argument("<name>", "name or id of the pipeline")
    .description("have a runner compare the source with the target")
    .option("--wait", "wait for the result; fails if they differ")
    .action(withCli(reconcile));
}

async function reconcile(cli: Cli, id: string, { wait = false }: { wait?: boolean }): Promise<ExitCode> {
  const requested = await cli.api.request("requestReconcile", { params: { id } });
  if (!wait) {
    cli.show(requested, () => reconcileTable(requested));
    return EXIT.ok;
  }
  const ended = await interruptible(cli.terminal, "The comparison goes on.", () => follow(cli, id, requested));
  cli.show(ended, () => reconcileTable(ended));
  sayFindings(cli, ended);
  return ended.status === "MATCH" ? EXIT.ok : EXIT.failed;
}

function follow(cli: Cli, id: string, { id: reconcile_id }: ReconcileAnswer): Promise<ReconcileAnswer> {
  const progress = openProgress(cli.terminal, 1);
  return poll(progress.say, {
    look: () => cli.api.request("getReconcile", { params: { id, reconcile_id } }),
    isOver: ({ status }) => status !== "WAITING" && status !== "RUNNING",
    onSeen: ({ status, rows_compared }) =>
      progress.show([{ name: id, step: status, text: `${status}  ${plural(rows_compared, "row")} compared` }]),
  });
}

function reconcileTable({ status, rows_compared: compared, report }: ReconcileAnswer): Table {
  const counts = [report?.missing, report?.extra, report?.different, report?.pending];
  return {
    columns: [
      { title: "STATUS" },
      { title: "COMPARED", align: "right" },
      { title: "MISSING", align: "right" },
      { title: "EXTRA", align: "right" },
      { title: "DIFFERENT", align: "right" },
      { title: "PENDING", align: "right" },
    ],
    rows: [[status, count(compared), ...counts.map((found) => (found === undefined ? "" : count(found.count)))]],
  };
}

function sayFindings({ terminal, isJson }: Cli, { report, error }: ReconcileAnswer): void {
  if (isJson) return;
  if (error !== null) terminal.say(`vitrina: ${error}`);
  if (report === null) return;
  const kinds = [
    ["missing in the target", report.missing.keys.map(keyText)],
    ["only in the target", report.extra.keys.map(keyText)],
    ["different", report.different.keys.map(({ key, columns }) => `${keyText(key)}: ${columnsText(columns)}`)],
  ] as const;
  for (const [kind, keys] of kinds) {
    for (const key of keys.slice(0, LISTED_KEYS)) terminal.say(`${kind}: ${key}`);
    if (keys.length > LISTED_KEYS) terminal.say(`${kind}: … and more; -o json lists up to 100`);
  }
  for (const note of report.notes) terminal.say(note);
}

/** There are none if the target refused the row as a whole. */
function columnsText(columns: readonly string[]): string {
  return columns.length === 0 ? "has a value that the target refuses" : columns.join(", ");
}

function keyText(key: Readonly<Record<string, string | null>>): string {
  return Object.entries(key)
    .map(([column, value]) => `${column}=${value ?? "null"}`)
    .join(", ");
}
