import type { Command } from "commander";
import { count, plural } from "../../domain/counted.ts";
import { type ApiAnswer, allPages } from "../api-client.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { CliFailure, EXIT, type ExitCode } from "../failure.ts";
import { poll } from "../poll.ts";
import { printable } from "../terminal-text.ts";
import { age } from "../words.ts";

type Plan = ApiAnswer<"getFollowPlan">;
type FollowStatus = ApiAnswer<"getFollowStatus">;

export function addFollowCommand(program: Command): void {
  const follow = program.command("follow").description("marts that follow every change of their source");
  follow
    .command("plan")
    .argument("<name>", "name or id of the pipeline")
    .description("show how changes of each table find their keys, what is missing, and what is refused")
    .action(withCli(plan));
  follow
    .command("script")
    .argument("<connection>", "source connection, such as main")
    .description("print the SQL that lets the source record its changes; its owner runs it")
    .option("--diff", "print only what the source lacks or no longer needs")
    .option("--remove", "print what takes everything away")
    .action(withCli(script));
  follow
    .command("status")
    .argument("[name]", "name or id of a pipeline (default: all that follow)")
    .description("show how far marts have followed their sources, and what waits")
    .action(withCli(status));
}

async function plan(cli: Cli, id: string): Promise<ExitCode> {
  const answer = await cli.api.request("getFollowPlan", { params: { id } });
  cli.show(answer, () => planText(answer));
  return answer.refusals.length === 0 ? EXIT.ok : EXIT.failed;
}

function planText(answer: Plan): string {
  const { tables, refusals, warnings } = answer;
  const found = tables.flatMap((table) => ["", ...tableLines(table)]);
  const refused = refusals.flatMap(({ message, way_out, line, column }) => [
    `  refused${line === undefined ? "" : ` at line ${line}, column ${column}`}: ${message}`,
    `    ${way_out}`,
  ]);
  const lines = [outcome(answer), ...refused, ...warnings.map((warning) => `  warning: ${warning}`), ...found];
  return lines.map(printable).join("\n");
}

function outcome({ pipeline, mode, key, tables, refusals }: Plan): string {
  const isRefused = refusals.length > 0;
  const what = `${plural(tables.length, "table")}, by ${key.join(", ")}.`;
  if (mode === "follow") return isRefused ? `${pipeline} cannot follow its source.` : `${pipeline} follows ${what}`;
  const would = isRefused ? "could not follow it." : `would follow ${what}`;
  return `${pipeline} does not follow its source: its mode is ${mode}. With mode follow it ${would}`;
}

function tableLines(table: Plan["tables"][number]): string[] {
  const {
    table: name,
    statement,
    recorded_columns,
    recording,
    recording_problem,
    missing_indexes,
    whole_tables,
  } = table;
  const columns = recorded_columns.map((column) => column.name).join(", ");
  const state = recording === null ? "" : `; ${recording}${recording_problem === null ? "" : `: ${recording_problem}`}`;
  return [
    `${name} (${columns === "" ? "no columns" : columns}${state})`,
    ...(statement === null ? [`  ${MEANING[table.on_change]}`] : inLines(statement).map((line) => `  ${line}`)),
    ...missing_indexes.map((index) => `  missing index: ${index};`),
    ...whole_tables.map((sentence) => `  slow: ${sentence}`),
  ];
}

/** What stands in brackets stays on its line. */
function inLines(statement: string): string[] {
  let depth = 0;
  const parts = statement.split(/("(?:[^"]|"")*"|'(?:[^']|'')*'|[()]| (?=FROM |WHERE |UNION |JOIN ))/);
  const text = parts.map((part) => {
    if (part === "(") depth += 1;
    if (part === ")") depth -= 1;
    return part === " " && depth === 0 ? "\n" : part;
  });
  return text.join("").split("\n");
}

const MEANING = {
  keys: "",
  everything: "any change: the whole mart is compared",
  ignore: "changes are left to the sweep",
} as const;

interface ScriptOptions {
  readonly diff?: boolean;
  readonly remove?: boolean;
}

/** The script is for all others where a pipeline is left out; whoever runs it unseen is told by the exit code. */
async function script(cli: Cli, connection: string, { diff, remove }: ScriptOptions): Promise<ExitCode> {
  if (diff && remove) throw new CliFailure(EXIT.usage, "Give either --diff or --remove.");
  const query = { ...(diff && { diff: "true" as const }), ...(remove && { remove: "true" as const }) };
  let text = "";
  for await (const part of cli.api.stream("getFollowScript", { params: { connection }, query }, {})) text += part;
  const leftOut = /^(?:-- Without .+\n)*/.exec(text)?.[0].match(/Without .+/g) ?? [];
  cli.show({ connection, script: text, left_out: leftOut }, () => text.trimEnd());
  for (const remark of leftOut) cli.terminal.say(printable(remark));
  return leftOut.length === 0 ? EXIT.ok : EXIT.failed;
}

async function status(cli: Cli, id: string | undefined): Promise<void> {
  if (id !== undefined) {
    const one = await statusOf(cli, id);
    cli.show(one, () => statusTable([one]));
    sayNotes(cli, [one]);
    return;
  }
  const { items } = await allPages((query) =>
    cli.api.request("listPipelines", { query: { ...query, mode: "follow" } }),
  );
  const all: FollowStatus[] = [];
  // One after the other: each asks its source. Many may hit the limit per minute; the rest are sent later.
  for (const pipeline of items) {
    all.push(await poll(cli.terminal.say, { look: () => statusOf(cli, pipeline.id), isOver: () => true }));
  }
  cli.show({ items: all }, () => statusTable(all));
  sayNotes(cli, all);
}

function statusOf(cli: Cli, id: string): Promise<FollowStatus> {
  return cli.api.request("getFollowStatus", { params: { id } });
}

function statusTable(all: readonly FollowStatus[]): Table {
  const when = (time: string | null): string => (time === null ? "never" : age(time));
  return {
    columns: [
      { title: "NAME" },
      { title: "LAG", align: "right" },
      { title: "WAITING", align: "right" },
      { title: "LAST ROUND", align: "right" },
      { title: "WHOLE COMPARE", align: "right" },
      { title: "SWEEP", align: "right" },
      { title: "REPAIRED", align: "right" },
      { title: "POSITION" },
    ],
    rows: all.map((one) => [
      one.pipeline,
      one.lag_seconds === null ? "unknown" : `${one.lag_seconds.toFixed(1)} s`,
      one.changes_waiting === null ? "unknown" : count(one.changes_waiting),
      when(one.last_round_at),
      one.comparing ? "under way" : when(one.last_compare_at),
      `${when(one.last_sweep_at)}${one.swept_parts === 0 ? "" : ` (${one.swept_parts} of ${one.sweep_parts})`}`,
      count(one.repaired),
      one.position === null ? "none" : firstAndNext(one.position),
    ]),
    whenEmpty: "No pipeline follows its source; mode: follow makes it.",
  };
}

/** Of a snapshot; the transactions that were running in between may be many. */
const firstAndNext = (position: string): string => position.split(":").slice(0, 2).join(":");

const mebibytes = (bytes: number): string => `${count(Math.ceil(bytes / 1024 ** 2))} MiB`;

const NOTHING_STARTS = "no change starts a run";

/** Of a pipeline that is enabled. */
const WHAT_STARTS: Partial<Record<FollowStatus["status"], string>> = {
  PAUSED: `PAUSED: ${NOTHING_STARTS}`,
  FAILED:
    "FAILED: it starts by itself only if the trouble may pass, once its source records its changes again, or with another configuration",
};

function sayNotes(cli: Cli, all: readonly FollowStatus[]): void {
  if (cli.isJson) return;
  const kept = new Map(all.flatMap(({ slot }) => (slot === null ? [] : [[slot.name, slot.kept_bytes]])));
  for (const [name, bytes] of kept) cli.terminal.say(`The slot ${name} keeps ${mebibytes(bytes)} of WAL.`);
  for (const { pipeline, status, enabled, following, compare_reason, note } of all) {
    const resting = enabled ? WHAT_STARTS[status] : `disabled: ${NOTHING_STARTS}`;
    if (resting !== undefined) cli.terminal.say(`${pipeline} is ${resting}. vitrina status ${pipeline} says more.`);
    if (compare_reason !== null)
      cli.terminal.say(`${pipeline}: why the whole mart was last compared: ${compare_reason}`);
    if (!following) cli.terminal.say(`${pipeline}: the next run compares the whole mart.`);
    if (note !== null) cli.terminal.say(`${pipeline}: ${note}`);
  }
}
