import { rename } from "node:fs/promises";
import { join, relative } from "node:path";
import { plural } from "../domain/counted.ts";
import { lockDataDir } from "../embedded-postgres/data-dir-lock.ts";
import { startEmbeddedPostgres } from "../embedded-postgres/start-embedded-postgres.ts";
import type { PipelineStore } from "../meta-store/ports/pipelines.ts";
import { createLog } from "../observability/log.ts";
import { createRegistry } from "../observability/registry.ts";
import { DEFAULT_API_URL } from "../settings/cli-settings.ts";
import type { Settings } from "../settings/settings.ts";
import type { TaskDescription } from "../tasks/task.ts";
import { requireFreePort, startApi } from "./api.ts";
import { openStore, prepareDatabase } from "./database.ts";
import { DEMO_TASKS, demoLacks, demoPipelines, findTasks, loadDemo } from "./demo.ts";
import { ownConnections, ownSource } from "./own-source.ts";
import { runOnce } from "./run-once.ts";
import { startRunner } from "./runner.ts";
import { untilStopped } from "./until-stopped.ts";
import { VERSION } from "./version.ts";

/** Everything on one machine: what `npm start` does. Ends when a signal asks for it, and leaves nothing running. */
export async function startAll(given: Settings): Promise<void> {
  const settings = { ...given, tasks: { ...given.tasks, folder: given.tasks.folder ?? DEMO_TASKS } };
  const stops: (() => Promise<void>)[] = [];
  const stopping = untilStopped();
  let interrupted = false;
  void stopping.then(() => {
    interrupted = true;
  });
  try {
    await bringUp(settings, stops, () => interrupted);
    await stopping;
    console.log("\nStopping …");
  } finally {
    // In reverse order: the database stops last.
    for (const stop of stops.reverse()) await stop();
  }
}

async function bringUp(settings: Settings, stops: (() => Promise<void>)[], interrupted: () => boolean): Promise<void> {
  await requireFreePort(settings.api);
  const lock = await lockDataDir(settings.dataDir);
  stops.push(() => lock.release());
  const log = createLog({ level: settings.logLevel, file: await freshLogFile(settings.dataDir) });

  const adminUrl = settings.databaseUrl ?? (await startDatabase(settings, stops));
  const { urls, applied } = await prepareDatabase(settings, adminUrl);
  if (applied.length > 0) say(`Schema created: ${plural(applied.length, "migration")}.`);
  const store = openStore(urls, "start", 2);
  stops.push(() => store.close());
  const tasks = await findTasks(settings, log);
  await announceDemo(settings, adminUrl, store.pipelines, tasks);

  // One process, one endpoint: the API also serves the runner's metrics.
  const registry = createRegistry(VERSION);
  const api = await startApi(settings, urls, log, registry, ownConnections(settings, urls));
  stops.push(() => api.stop());
  const runner = await startRunner(settings, urls, log, registry, ownSource(settings, urls, adminUrl));
  stops.push(() => runner.stop());
  const names = (await demoPipelines(settings, tasks)).map(({ name }) => name);
  await runOnce(store, names, interrupted, say);
  if (!interrupted()) sayWhatNext(settings, api.url, names[0] ?? "NAME");
}

async function startDatabase(settings: Settings, stops: (() => Promise<void>)[]): Promise<string> {
  say("Starting PostgreSQL …");
  const postgres = await startEmbeddedPostgres({ dataDir: settings.dataDir });
  stops.push(() => postgres.stop());
  say(`PostgreSQL is ready on port ${postgres.port}; its data is in ${shortPath(settings.dataDir)}.`);
  return postgres.url;
}

async function announceDemo(
  settings: Settings,
  adminUrl: string,
  pipelines: PipelineStore,
  tasks: readonly TaskDescription[],
): Promise<void> {
  switch (await loadDemo(settings, adminUrl, pipelines, tasks)) {
    case "loaded":
      return say(["Cinema demo loaded: schemas content and ugc.", ...(await demoLacks(settings, tasks))].join("\n"));
    case "skipped":
      return say("The database has schemas content or ugc of its own: the demo was not loaded.");
    case "extended":
      return say("Pipelines of the cinema demo added: what they need is there now.");
    case "present":
      return;
  }
}

/** The log of the previous start is kept, for looking into a crash. */
async function freshLogFile(dataDir: string): Promise<string> {
  const file = join(dataDir, "vitrina.log");
  await rename(file, `${file}.1`).catch(() => undefined);
  return file;
}

function sayWhatNext(settings: Settings, url: string, pipeline: string): void {
  const { loginRequired } = settings.api;
  const curl = loginRequired ? 'curl -H "authorization: Bearer $VITRINA_API_KEY"' : "curl";
  const login = loginRequired
    ? 'Every request needs a key: export VITRINA_API_KEY="$(npx vitrina key create --name me --role admin)"'
    : "Without a login it listens on this machine only.";
  say(`
Vitrina is ready. ${login}

  API        ${url}/api/v1/pipelines
  API docs   ${url}/docs
  Database   ${settings.databaseUrl === undefined ? 'psql "$(npx vitrina db-url)"' : `${placeOf(settings.databaseUrl)}, as DATABASE_URL says`}
  Log        ${shortPath(join(settings.dataDir, "vitrina.log"))}

Try, in another terminal:
  ${url === DEFAULT_API_URL ? "" : `export VITRINA_API_URL=${url}\n  `}npx vitrina status
  npx vitrina run ${pipeline} --wait
  ${curl} ${url}/api/v1/pipelines/${pipeline}/runs

Add a mart of your own: see "Add a mart" in README.md. Stop with Ctrl-C.`);
}

/** Where the database is, without its login. A command would not help: another terminal has no DATABASE_URL. */
function placeOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${decodeURIComponent(pathname.slice(1))} at ${host === "" ? "this machine" : host}`;
}

function shortPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") ? path : short;
}

function say(text: string): void {
  console.log(text);
}
