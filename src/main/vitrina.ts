import { Command } from "commander";
import { addApiCommands } from "../cli/add-api-commands.ts";
import { reportFailure } from "../cli/report-failure.ts";
import { tolerateClosedPipes } from "../cli/terminal.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { createLog, redact } from "../observability/log.ts";
import { loadSettings } from "../settings/settings.ts";
import { startApi } from "./api.ts";
import { openStore, prepareDatabase } from "./database.ts";
import { databaseUrl } from "./db-url.ts";
import { loadDemo } from "./demo.ts";
import { addKeyCommands } from "./key.ts";
import { startRunner } from "./runner.ts";
import { startAll } from "./start.ts";
import { untilStopped } from "./until-stopped.ts";
import { VERSION } from "./version.ts";

const program = new Command("vitrina")
  .description("Builds data marts from PostgreSQL. Settings come from the environment or .env (see .env.sample).")
  .version(VERSION)
  // Inherited by every command, so it comes before them: wrong usage ends here, too, and has an exit code of its own.
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "vitrina: ")) })
  .showHelpAfterError("  Add --help to see how it is used.");

program
  .command("start")
  .description("start everything on this machine: PostgreSQL (unless DATABASE_URL is set), the demo, API and runner")
  .action(() => startAll(loadSettings()));

program
  .command("api")
  .description("start the API alone, on a migrated database")
  .action(() => serve(startApi));

program
  .command("runner")
  .description("start a runner alone, on a migrated database; start as many as you like")
  .action(() => serve(startRunner));

program
  .command("migrate")
  .description("bring the database of DATABASE_URL to this version's schema, with its roles and grants")
  .option("--demo", "also load the cinema demo into an empty database")
  .action(async ({ demo }: { demo?: boolean }) => {
    const settings = loadSettings();
    if (settings.databaseUrl === undefined) {
      throw new VitrinaError("SETTINGS_INVALID", "DATABASE_URL must be set to the database to migrate.");
    }
    const { urls, applied } = await prepareDatabase(settings, settings.databaseUrl);
    console.log(applied.length === 0 ? "The schema is up to date." : `Applied ${applied.join(", ")}.`);
    if (demo !== true) return;
    const store = openStore(urls, "demo", 1);
    try {
      console.log(`Demo: ${await loadDemo(settings, settings.databaseUrl, store)}.`);
    } finally {
      await store.close();
    }
  });

program
  .command("db-url")
  .description('print the URL of the database, for psql: psql "$(npx vitrina db-url)"')
  .action(async () => console.log(await databaseUrl(loadSettings())));

addKeyCommands(program);
addApiCommands(program);

/** Runs one part until a signal asks it to end. */
async function serve(start: typeof startApi | typeof startRunner): Promise<void> {
  const settings = loadSettings();
  const log = createLog({ level: settings.logLevel });
  const part = await start(settings, settings.databaseUrls(), log);
  const signal = await untilStopped();
  log.info({ signal }, "stopping");
  await part.stop();
}

tolerateClosedPipes();
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error) ?? reportError(error);
}

function reportError(error: unknown): number {
  const hint = error instanceof VitrinaError ? `\n  ${error.hint}` : "";
  const text = error instanceof VitrinaError ? error.message : error instanceof Error ? error.stack : String(error);
  console.error(redact(`vitrina: ${text}${hint}`));
  return 1;
}
