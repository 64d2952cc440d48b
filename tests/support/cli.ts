import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Host } from "../../src/cli/host.ts";
import { freePort } from "../../src/embedded-postgres/free-port.ts";
import type { RunningPart } from "../../src/main/api.ts";
import { runProgram } from "../../src/main/program.ts";
import type { TestDatabase } from "./database.ts";
import { holdLock } from "./hold-lock.ts";
import { openStand } from "./stand.ts";
import { until } from "./until.ts";
import { roleEnvironment, type VitrinaProcess } from "./vitrina-process.ts";

export const COMMAND = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));

/** What a command did, with its two outputs separately. */
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
  readonly result: Promise<CliResult>;
}

/** In a process of its own, for what only the whole program can show. */
interface SpawnedCli extends CliProcess {
  signal(signal: NodeJS.Signals): void;
}

/** A database with films, an API and a runner on it, and the commands: all in this process, which works in its folder. */
export interface CliBench {
  readonly database: TestDatabase;
  readonly url: string;
  readonly folder: string;
  cli(args: readonly string[], env?: Record<string, string>): Promise<CliResult>;
  startCli(args: readonly string[], env?: Record<string, string>): CliProcess;
  spawnCli(args: readonly string[], env?: Record<string, string>): SpawnedCli;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any answer.
  json(args: readonly string[]): Promise<any>;
  write(name: string, content: string): Promise<string>;
  /** A pipeline that copies the films. */
  create(name: string, more?: object): Promise<void>;
  /** Loaded once, with every row changed since, and a target that nobody can write until the returned function ends. */
  createStuck(name: string): Promise<() => Promise<void>>;
  startApi(): Promise<RunningPart>;
  startRunner(): Promise<void>;
  stopRunner(): Promise<void>;
  /** One that can be killed. */
  spawnRunner(): Promise<VitrinaProcess>;
  stop(): Promise<void>;
}

export const FILMS = 1000;

/** A short lease has short timeouts: a locked target soon fails the attempt that waits for it. */
const SETTINGS = { LEASE_SECONDS: "3", RUNNER_POLL_SECONDS: "1", RETRY_ATTEMPTS: "20", RETRY_BACKOFF_SECONDS: "1" };

export async function openCliBench(settings: Record<string, string> = {}): Promise<CliBench> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const stand = await openStand({ settings: { ...SETTINGS, API_PORT: new URL(url).port, ...settings } });
  const { database } = stand;
  await database.query(`
    CREATE TABLE content.film AS SELECT n AS id, 'old ' || n AS title FROM generate_series(1, ${FILMS}) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id); ANALYZE content.film`);
  const folder = await mkdtemp(join(tmpdir(), "vitrina-cli-"));
  const folderBefore = process.cwd();
  process.chdir(folder);

  const environment = (more: Record<string, string>): Record<string, string> => ({
    PATH: process.env["PATH"] ?? "",
    VITRINA_API_URL: url,
    ...more,
  });

  const startCli: CliBench["startCli"] = (args, env = {}) => {
    const [stdout, stderr] = [collected(), collected()];
    const host: Host = {
      env: environment(env),
      stdin: Readable.from([]),
      stdout: stdout.stream,
      stderr: stderr.stream,
    };
    let isOver = false;
    const result = runProgram(args, host).then((): CliResult => {
      isOver = true;
      return { code: Number(host.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() };
    });
    return { stdout: stdout.text, stderr: stderr.text, untilSaid: untilSaid(stderr.text, () => isOver), result };
  };

  const spawnCli: CliBench["spawnCli"] = (args, env = {}) => {
    const options = { cwd: folder, env: environment(env) };
    const child = spawn(process.execPath, [COMMAND, ...args], { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr] = [collected(), collected()];
    child.stdout.pipe(stdout.stream);
    child.stderr.pipe(stderr.stream);
    return {
      stdout: stdout.text,
      stderr: stderr.text,
      signal: (signal) => void child.kill(signal),
      untilSaid: untilSaid(stderr.text, () => child.exitCode !== null),
      result: once(child, "close").then(([code, signal]) => ({
        code: code ?? signal,
        stdout: stdout.text(),
        stderr: stderr.text(),
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
    spawnCli,
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
      stand.onClose(() => unlock().catch(() => undefined));
      return unlock;
    },
    startApi: () => stand.startApi(),
    startRunner: stand.startRunner,
    stopRunner: stand.stopRunner,
    async spawnRunner() {
      const runner = stand.spawn(["runner"], { cwd: folder, env: { ...roleEnvironment(database.urls), ...SETTINGS } });
      await runner.untilPrinted("runner started");
      return runner;
    },
    async stop() {
      process.chdir(folderBefore);
      await stand.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Keeps what is written to it. */
function collected(): { readonly stream: Writable; text(): string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}

function untilSaid(said: () => string, isOver: () => boolean): CliProcess["untilSaid"] {
  return async (text) => {
    await until(`it says ${String(text)}`, () => {
      // Checked before looking: its last output is there once it is over.
      const over = isOver();
      if (typeof text === "string" ? said().includes(text) : text.test(said())) return true;
      if (over) throw new Error(`It ended without saying ${String(text)}:\n${said()}`);
      return false;
    });
  };
}
