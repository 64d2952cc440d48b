import { type Command, InvalidArgumentError, Option } from "commander";
import { count } from "../../domain/counted.ts";
import type { Run } from "../api-types.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { localTime } from "../words.ts";
import { REPEATED, secondsOf } from "./run.ts";

const MOST_RUNS = 200;
const KINDS: readonly Run["kind"][] = ["load", "restore", "reconcile"];
const STATUSES: readonly Run["status"][] = [
  "REQUESTED",
  "RUNNING",
  "SUCCESS",
  "FAILED",
  "PAUSED",
  "HANDED_BACK",
  "CANCELLED",
];

export function addRunsCommand(program: Command): void {
  program
    .command("runs")
    .argument("[name]", "name or id of a pipeline (default: all)")
    .description("list runs, newest first")
    .option("--since <time>", "only those started since then: 90m, 12h, 7d, or 2026-01-31T12:00", momentOf)
    .addOption(new Option("--kind <kind>", "only those of this kind").choices(KINDS))
    .addOption(new Option("--status <status>", "only those with this status").choices(STATUSES))
    .option("--limit <number>", "at most this many, up to 200", limitOf, 20)
    .action(withCli(runs));
}

export function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_RUNS) return limit;
  throw new InvalidArgumentError(`It must be a number from 1 to ${MOST_RUNS}.`);
}

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A time, or how long ago; a time without a zone is in this machine's zone. */
function momentOf(text: string): string {
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const moment =
    number === undefined ? Date.parse(text) : Date.now() - Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
  // Date.parse also accepts things such as a bare number, which are surely typos.
  if (Number.isNaN(moment) || (number === undefined && !/^\d{4}-\d{2}-\d{2}/.test(text))) {
    throw new InvalidArgumentError("It must be how long ago (90m, 12h, 7d), or a time such as 2026-01-31T12:00.");
  }
  return new Date(moment).toISOString();
}

interface RunsOptions {
  readonly limit: number;
  readonly since?: string;
  readonly kind?: Run["kind"];
  readonly status?: Run["status"];
}

async function runs(cli: Cli, id: string | undefined, { limit, since, kind, status }: RunsOptions): Promise<void> {
  const query = {
    limit,
    ...(since !== undefined && { started_after: since }),
    ...(kind !== undefined && { kind }),
    ...(status !== undefined && { status }),
  };
  const page = await (id === undefined
    ? cli.api.request("listAllRuns", { query })
    : cli.api.request("listRuns", { params: { id }, query }));
  cli.show(page, () => runTable(page.items, id === undefined, Object.keys(query).length > 1));
  if (page.next !== null && !cli.isJson) cli.terminal.say(`There are older runs; --limit shows up to ${MOST_RUNS}.`);
}

function runTable(items: readonly Run[], isOfAll: boolean, isChosen: boolean): Table {
  const hasOtherKinds = items.some(({ kind }) => kind !== "load");
  const hasRepeated = items.some(({ rows_deduplicated }) => rows_deduplicated > 0);
  const hasNotes = items.some(({ notes }) => notes.length > 0);
  return {
    columns: [
      ...(isOfAll ? [{ title: "PIPELINE" }] : []),
      { title: "STARTED" },
      ...(hasOtherKinds ? [{ title: "KIND" }] : []),
      { title: "STATUS" },
      { title: "TRIGGER" },
      { title: "ATTEMPT", align: "right" },
      { title: "VERSION", align: "right" },
      { title: "READ", align: "right" },
      { title: "WRITTEN", align: "right" },
      { title: "DELETED", align: "right" },
      ...(hasRepeated ? [REPEATED] : []),
      { title: "REJECTED", align: "right" },
      { title: "SECONDS", align: "right" },
      { title: "ERROR" },
      ...(hasNotes ? [{ title: "NOTES" }] : []),
    ],
    rows: items.map((run) => [
      ...(isOfAll ? [run.pipeline_name] : []),
      localTime(run.started_at),
      ...(hasOtherKinds ? [run.kind] : []),
      run.status,
      run.trigger,
      String(run.attempt),
      String(run.config_version),
      count(run.rows_read),
      count(run.rows_written),
      count(run.rows_deleted),
      ...(hasRepeated ? [count(run.rows_deduplicated)] : []),
      count(run.rows_rejected),
      secondsOf(run),
      run.error ?? "",
      ...(hasNotes ? [run.notes.join(" ")] : []),
    ]),
    whenEmpty: isChosen ? "There are no such runs." : isOfAll ? "Nothing has run yet." : "It has never run.",
  };
}
