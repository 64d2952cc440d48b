/**
 * A small program that hosts the embedded PostgreSQL, for tests that kill or crash their host. It is told what to do
 * as JSON on its command line, and reports as lines of JSON.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { lockDataDir } from "../../src/embedded-postgres/data-dir-lock.ts";
import {
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/start-embedded-postgres.ts";

export interface HostOrder {
  /** `drain`: on Ctrl-C still use the database for a while, then stop. `throw`: die of an uncaught exception. */
  readonly behaviour: "lock" | "hold" | "drain" | "throw";
  readonly options: EmbeddedPostgresOptions;
}

export interface HostReport {
  readonly url?: string;
  readonly code?: string;
  readonly message?: string;
  readonly event?: "locked" | "drained" | "stopped";
}

const report = (line: HostReport): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
};

async function query(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query("SELECT 1");
  await client.end();
}

async function host({ behaviour, options }: HostOrder): Promise<void> {
  const stayAlive = setInterval(() => {}, 60_000);
  if (behaviour === "lock") {
    await lockDataDir(options.dataDir);
    report({ event: "locked" });
    return;
  }
  const server = await startEmbeddedPostgres(options);
  if (behaviour === "throw") {
    setTimeout(() => {
      throw new Error("thrown on purpose");
    }, 50);
  }
  if (behaviour === "drain") {
    process.once("SIGINT", async () => {
      // Time for a Ctrl-C that also reached the server to do its harm.
      await sleep(500);
      await query(server.url);
      report({ event: "drained" });
      await server.stop();
      report({ event: "stopped" });
      clearInterval(stayAlive);
    });
  }
  report({ url: server.url });
}

try {
  await host(JSON.parse(process.argv[2] ?? ""));
} catch (error) {
  const code = error instanceof VitrinaError ? error.code : "NOT_A_VITRINA_ERROR";
  report({ code, message: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}
