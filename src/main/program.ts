import { Command } from "commander";
import { addApiCommands } from "../cli/add-api-commands.ts";
import { reportFailure } from "../cli/failure.ts";
import { type Host, setHost } from "../cli/host.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Log } from "../observability/log.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";
import type { RunningPart } from "./api.ts";
import { addKeyCommands } from "./key.ts";
import { VERSION } from "./version.ts";

/** One command from its arguments to its exit code. */
export async function runProgram(args: readonly string[], host: Host): Promise<void> {
  const program = await buildProgram(host, args[0]);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    host.exitCode = reportFailure(error, host.stderr) ?? (await reportError(error, host));
  }
}

async function reportError(error: unknown, { stderr }: Host): Promise<number> {
  const { redact } = await import("../observability/log.ts");
  const hint = error instanceof VitrinaError ? `\n  ${error.hint}` : "";
  const text = error instanceof VitrinaError ? error.message : error instanceof Error ? error.stack : String(error);
  stderr.write(`${redact(`vitrina: ${text}${hint}`)}\n`);
  return 1;
}

/** `wanted`: the first argument, if only that command is needed. Server code is loaded only when a server starts. */
export async function buildProgram(host: Host = process, wanted?: string): Promise<Command> {
  const program = new Command("vitrina")
    .description("Builds data marts from PostgreSQL. Settings come from the environment or .env (see .env.sample).")
    .version(VERSION)
    // Inherited by every command, so it comes before them: the caller decides about exit codes.
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void host.stdout.write(text),
      writeErr: (text) => void host.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "vitrina: ")),
    })
    .showHelpAfterError("  Add --help to see how it is used.");
  setHost(program, host);
  addServerCommands(program);
  addDatabaseCommands(program);
  addKeyCommands(program);
  await addApiCommands(program, wanted);
  return program;
}

function addServerCommands(program: Command): void {
  program
    .command("start")
    .description("start everything on this machine: PostgreSQL (unless DATABASE_URL is set), the demo, API and runner")
    .action(async () => (await import("./start.ts")).startAll(await readSettings()));

  program
    .command("api")
    .description("start the API alone, on a migrated database")
    .action(async () => {
      const { startApi } = await import("./api.ts");
      await serve((settings, urls, log) => startApi(settings, urls, log));
    });

  program
    .command("runner")
    .description("start a runner alone, on a migrated database; start as many as you like")
    .action(async () => serve((await import("./runner-alone.ts")).startRunnerAlone));
}

function addDatabaseCommands(program: Command): void {
  program
    .command("migrate")
    .description(
      "bring the database to this version's schema, with its roles, and let the reader read the schemas of SOURCE_SCHEMAS",
    )
    .option("--demo", "also load the cinema demo into an empty database")
    .action(migrate);

  program
    .command("db-url")
    .description('print the URL of the database, for psql: psql "$(npx vitrina db-url)"')
    .action(async () => console.log(await databaseUrl(await readSettings())));
}

/** Loaded late, as all that the API's own commands do without. */
async function readSettings(): Promise<Settings> {
  return (await import("../settings/settings.ts")).loadSettings();
}

async function databaseUrl(settings: Settings): Promise<string> {
  const { embeddedDatabaseUrl } = await import("../embedded-postgres/database-url.ts");
  const url = settings.databaseUrl ?? (await embeddedDatabaseUrl(settings.dataDir));
  if (url !== undefined) return url;
  throw new VitrinaError("DATABASE_UNAVAILABLE", `No embedded PostgreSQL runs on ${settings.dataDir}.`, {
    hint: "Start it with npm start in this folder; with a database of your own, set DATABASE_URL here, too.",
  });
}

async function migrate({ demo }: { demo?: boolean }): Promise<void> {
  const { openStore, prepareDatabase } = await import("./database.ts");
  const settings = await readSettings();
  const adminUrl = await databaseUrl(settings);
  const { urls, applied, readable } = await prepareDatabase(settings, adminUrl);
  console.log(applied.length === 0 ? "The schema is up to date." : `Applied ${applied.join(", ")}.`);
  if (readable.length > 0) console.log(`vitrina_reader may read every table of ${readable.join(", ")}.`);
  const lacking = settings.sourceSchemas.filter((schema) => !readable.includes(schema));
  if (lacking.length > 0) console.log(`Not there yet: ${lacking.join(", ")}. Run this again once they are.`);
  if (demo !== true) return;
  const store = openStore(urls, "demo", 1);
  try {
    const { demoLacks, findTasks, loadDemo } = await import("./demo.ts");
    const { createLog } = await import("../observability/log.ts");
    const tasks = await findTasks(settings, createLog({ level: settings.logLevel }));
    const outcome = await loadDemo(settings, adminUrl, store.pipelines, tasks);
    console.log(`Demo: ${outcome}.`);
    if (outcome === "loaded") for (const lack of await demoLacks(settings, tasks)) console.log(lack);
  } finally {
    await store.close();
  }
}

/** Runs one server until a signal stops it. */
async function serve(
  start: (settings: Settings, urls: DatabaseUrls, log: Log, stopSignal: AbortSignal) => Promise<RunningPart>,
): Promise<void> {
  const [{ createLog }, { untilStopped }] = await Promise.all([
    import("../observability/log.ts"),
    import("./until-stopped.ts"),
  ]);
  const settings = await readSettings();
  const log = createLog({ level: settings.logLevel });
  // From the start: a container's first process has no default signal handling, and may be stopped while it starts.
  const stopping = untilStopped();
  const stop = new AbortController();
  void stopping.then(() => stop.abort());
  const part = await start(settings, settings.databaseUrls(), log, stop.signal);
  const signal = await stopping;
  log.info({ signal }, "stopping");
  await part.stop();
}
