import type { Command } from "commander";
import { count } from "../../domain/counted.ts";
import type { Pipeline, Run } from "../api-types.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { CliFailure, EXIT, type ExitCode } from "../failure.ts";
import { followRun, type RunRequest, runProgress, type StatusAnswer } from "../follow-run.ts";
import { interruptible } from "../poll.ts";
import { openProgress } from "../progress.ts";
import { pipelineTable } from "./pipelines.ts";

export function addRunCommand(program: Command): void {
  program
    .command("run")
    .argument("<name...>", "names or ids of pipelines")
    .description("request a run of each; resumes a paused pipeline and retries a failed one")
    .option("--wait", "wait until the runs have ended, including retries; fails unless all succeed")
    .action(withCli(run));
}

async function run(cli: Cli, names: readonly string[], { wait = false }: { wait?: boolean }): Promise<ExitCode> {
  const requested: Pipeline[] = [];
  const refused: CliFailure[] = [];
  for (const id of new Set(names)) {
    try {
      requested.push(await cli.api.request("runPipeline", { params: { id } }));
    } catch (error) {
      // The others are still requested, unless no request can succeed.
      if (!(error instanceof CliFailure) || error.exitCode !== EXIT.failed || names.length === 1) throw error;
      cli.terminal.say(`vitrina: ${[error.message, ...error.lines].join("\n  ")}`);
      refused.push(error);
    }
  }
  if (wait) return (await waitFor(cli, names, requested)) && refused.length === 0 ? EXIT.ok : EXIT.failed;
  cli.show(oneOrAll(names, requested), () => pipelineTable(requested));
  return refused.length === 0 ? EXIT.ok : EXIT.failed;
}

/** True when all of them succeed. */
async function waitFor(
  cli: Cli,
  names: readonly string[],
  pipelines: readonly Pipeline[],
  command: "run" | "restore-previous" = "run",
): Promise<boolean> {
  const goesOn = "The runs go on; vitrina status shows their progress.";
  const ends = await interruptible(cli.terminal, goesOn, () => followAll(cli, pipelines));
  const runs = ends.map(({ last_run: run }) => run).filter((run) => run !== null);
  cli.show(oneOrAll(names, runs), () => runSummary(runs));
  for (const { name, last_run: run } of ends) {
    const problem = problemOf(command, name, run);
    if (problem !== undefined) cli.terminal.say(`vitrina: ${problem}`);
  }
  return ends.every(({ last_run: run }) => run?.status === "SUCCESS");
}

function followAll(cli: Cli, pipelines: readonly Pipeline[]): Promise<StatusAnswer[]> {
  const progress = openProgress(cli.terminal, pipelines.length);
  const seen: StatusAnswer[] = pipelines.map((pipeline) => ({ ...pipeline, over: false, last_run: null }));
  const follow = (request: RunRequest, index: number): Promise<StatusAnswer> =>
    followRun(cli, request, progress.say, (status) => {
      seen[index] = status;
      progress.show(seen.map(runProgress));
    });
  return Promise.all(pipelines.map(({ id, name, run_request: number }, index) => follow({ id, name, number }, index)));
}

function problemOf(command: string, name: string, run: Run | null): string | undefined {
  const again = `vitrina ${command} ${name} requests it again.`;
  if (run === null) return `${name} did not run: the request was withdrawn. ${again}`;
  if (run.status === "FAILED") return `${name} failed: ${run.error ?? "the cause is unknown."}`;
  if (run.status === "CANCELLED") {
    const next = run.kind === "restore" ? again : `vitrina run ${name} continues it.`;
    return `${name} was cancelled before it finished.\n  ${next}`;
  }
  if (run.status === "PAUSED") return `${name} was paused before it finished.\n  vitrina run ${name} continues it.`;
  return undefined;
}

/** For one name the API's answer, for several a list of them. */
function oneOrAll(names: readonly string[], answers: readonly unknown[]): unknown {
  return names.length === 1 ? (answers[0] ?? null) : answers;
}

/** Rows skipped because a later one has the same key; the column is shown only if there are any. */
export const REPEATED = { title: "REPEATED", align: "right" } as const;

function runSummary(runs: readonly Run[]): Table {
  const right = "right" as const;
  const hasRepeated = runs.some(({ rows_deduplicated }) => rows_deduplicated > 0);
  return {
    columns: [
      { title: "PIPELINE" },
      { title: "STATUS" },
      { title: "READ", align: right },
      { title: "WRITTEN", align: right },
      { title: "UNCHANGED", align: right },
      { title: "DELETED", align: right },
      ...(hasRepeated ? [REPEATED] : []),
      { title: "REJECTED", align: right },
      { title: "ROWS/S", align: right },
      { title: "SECONDS", align: right },
    ],
    rows: runs.map((run) => [
      run.pipeline_name,
      run.status,
      count(run.rows_read),
      count(run.rows_written),
      count(run.rows_unchanged),
      count(run.rows_deleted),
      ...(hasRepeated ? [count(run.rows_deduplicated)] : []),
      count(run.rows_rejected),
      count(run.rows_per_second),
      secondsOf(run),
    ]),
  };
}

export function secondsOf({ started_at, finished_at }: Run): string {
  return finished_at === null ? "" : ((Date.parse(finished_at) - Date.parse(started_at)) / 1000).toFixed(2);
}

export function addRestorePreviousCommand(program: Command): void {
  program
    .command("restore-previous")
    .argument("<name>", "name or id of a pipeline that builds a search index")
    .description("bring back the index as it was before the last full load")
    .option("--wait", "wait until it is back")
    .action(withCli(restorePrevious));
}

async function restorePrevious(cli: Cli, id: string, { wait = false }: { wait?: boolean }): Promise<ExitCode> {
  const pipeline = await cli.api.request("restorePreviousTarget", { params: { id } });
  if (wait) return (await waitFor(cli, [id], [pipeline], "restore-previous")) ? EXIT.ok : EXIT.failed;
  cli.show(pipeline, () => pipelineTable([pipeline]));
  return EXIT.ok;
}
