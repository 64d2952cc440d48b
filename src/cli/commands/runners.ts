import type { Command } from "commander";
import { type Cli, withCli } from "../cli.ts";
import { age, localTime } from "../words.ts";

export function addRunnerCommands(program: Command): void {
  program.command("runners").description("list the runners and what they hold").action(withCli(runners));
  program.command("tasks").description("list the code tasks that the runners have").action(withCli(tasks));
}

async function runners(cli: Cli): Promise<void> {
  const answer = await cli.api.request("listRunners");
  cli.show(answer, () => ({
    columns: [
      { title: "HOST" },
      { title: "PID", align: "right" },
      { title: "STATE" },
      { title: "STARTED" },
      { title: "SEEN", align: "right" },
      { title: "VERSION" },
      { title: "HOLDS" },
    ],
    rows: answer.items.map(({ hostname, pid, alive, stopped_at, started_at, last_seen_at, version, holds }) => [
      hostname,
      String(pid),
      alive ? "alive" : stopped_at === null ? "lost" : "stopped",
      localTime(started_at),
      age(last_seen_at),
      version,
      holds.map(({ pipeline_name: name, kind }) => (kind === "load" ? name : `${name} (${kind})`)).join(", "),
    ]),
    whenEmpty: "No runner was seen in the last 24 hours; start one with vitrina runner.",
  }));
}

async function tasks(cli: Cli): Promise<void> {
  const answer = await cli.api.request("listTasks");
  cli.show(answer, () => ({
    columns: [{ title: "NAME" }, { title: "LANGUAGE" }, { title: "RUNNERS", align: "right" }, { title: "DESCRIPTION" }],
    rows: answer.items.map(({ name, language, runners, description }) => [
      name,
      language,
      String(runners.length),
      description,
    ]),
    whenEmpty: "No live runner has a code task.",
  }));
}
