import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { freePort } from "../../src/embedded-postgres/free-port.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { holdLock } from "./hold-lock.ts";
import { until } from "./until.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "./vitrina-process.ts";

export const COMMAND = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));

/** What a command did, with its two outputs apart. */
export interface CliResult {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

interface CliProcess {
  /** What it said so far. */
  stdout(): string;
  stderr(): string;
  untilSaid(text: string | RegExp): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  readonly result: Promise<CliResult>;
}

/** A database with films, and an API and runners on it, all as real processes. */
export interface CliBench {
  readonly database: TestDatabase;
  readonly url: string;
  readonly folder: string;
  cli(args: readonly string[], env?: Record<string, string>): Promise<CliResult>;
  startCli(args: readonly string[], env?: Record<string, string>): CliProcess;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer.
  json(args: readonly string[]): Promise<any>;
  write(name: string, content: string): Promise<string>;
  /** A pipeline that copies the films. */
  create(name: string, more?: object): Promise<void>;
  /** Loaded once, with every row changed since, and a target that nobody can write until the returned function ends. */
  createStuck(name: string): Promise<() => Promise<void>>;
  startApi(env?: Record<string, string>): Promise<VitrinaProcess>;
  startRunner(): Promise<VitrinaProcess>;
  stop(): Promise<void>;
}

export const FILMS = 1000;

export async function openCliBench(): Promise<CliBench> {
  const database = await createTestDatabase(inject("postgresUrl"));
  await database.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS SELECT n AS id, 'old ' || n AS title FROM generate_series(1, ${FILMS}) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id);
    GRANT SELECT ON content.film TO vitrina_reader; ANALYZE content.film`);
  const folder = await mkdtemp(join(tmpdir(), "vitrina-cli-"));
  const url = `http://127.0.0.1:${await freePort()}`;
  const processes: VitrinaProcess[] = [];
  const unlocks: (() => Promise<void>)[] = [];

  const startPart = async (part: string, env: Record<string, string>, sign: string): Promise<VitrinaProcess> => {
    const roles = roleEnvironment(database.urls);
    // A short lease has short timeouts: a locked target soon fails the attempt that waits for it.
    const settings = { LEASE_SECONDS: "3", RUNNER_POLL_SECONDS: "1", RETRY_ATTEMPTS: "20", RETRY_BACKOFF_SECONDS: "1" };
    const started = spawnVitrina([part], { cwd: folder, env: { ...roles, ...settings, ...env } });
    processes.push(started);
    await started.untilPrinted(sign);
    return started;
  };

  const startCli: CliBench["startCli"] = (args, env = {}) => {
    const child = spawn(process.execPath, [COMMAND, ...args], {
      cwd: folder,
      env: { PATH: process.env["PATH"], VITRINA_API_URL: url, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (chunk) => out.push(chunk));
    child.stderr.on("data", (chunk) => err.push(chunk));
    const [stdout, stderr] = [() => Buffer.concat(out).toString(), () => Buffer.concat(err).toString()];
    return {
      stdout,
      stderr,
      signal: (signal) => void child.kill(signal),
      untilSaid: async (text) => {
        await until(`it says ${String(text)}`, () => {
          if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}:\n${stdout()}${stderr()}`);
          return typeof text === "string" ? stderr().includes(text) : text.test(stderr());
        });
      },
      result: once(child, "close").then(([code, signal]) => ({
        code: code ?? signal,
        stdout: stdout(),
        stderr: stderr(),
      })),
    };
  };
  const cli: CliBench["cli"] = (args, env) => startCli(args, env).result;

  const create: CliBench["create"] = async (name, more = {}) => {
    const body = {
      name,
      source_query: "SELECT id, title FROM content.film",
      target_table: `analytics.${name}`,
      target_key: ["id"],
      create_target: true,
      batch_size: 100,
      ...more,
    };
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/api/v1/pipelines`, { method: "POST", headers, body: JSON.stringify(body) });
    if (answer.status !== 201) throw new Error(await answer.text());
  };

  return {
    database,
    url,
    folder,
    cli,
    startCli,
    create,
    async json(args) {
      const { code, stdout, stderr } = await cli([...args, "-o", "json"]);
      if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}:\n${stderr}`);
      return JSON.parse(stdout);
    },
    async write(name, content) {
      await writeFile(join(folder, name), content);
      return name;
    },
    async createStuck(name) {
      // Few attempts, one soon after the other, instead of a wait in between.
      await create(name, { retry_for_seconds: 0 });
      await cli(["run", name, "--wait"]);
      await database.query("UPDATE content.film SET title = 'new ' || id || clock_timestamp()");
      const unlock = await holdLock(database.url, `LOCK TABLE analytics.${name} IN EXCLUSIVE MODE`);
      unlocks.push(unlock);
      return unlock;
    },
    startApi: (env = {}) => startPart("api", { API_PORT: new URL(url).port, ...env }, "api started"),
    startRunner: () => startPart("runner", {}, "runner started"),
    async stop() {
      for (const unlock of unlocks) await unlock().catch(() => undefined);
      await Promise.all(processes.map((started) => started.stop()));
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
