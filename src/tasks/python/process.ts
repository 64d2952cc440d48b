import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { withinLimits } from "../within-limits.ts";
import { LastLines } from "./last-lines.ts";
import { parseReply, type Reply, type RequestType, UnreadableReply } from "./protocol.ts";

export interface PythonOptions {
  /** The program: `python3`, or the path of one. */
  readonly program: string;
  readonly folder: string;
  readonly memoryLimitMib: number;
  /** The runner's; only harmless variables reach the worker, never a URL or a password. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What tasks print. */
  printed(line: string): void;
}

const PACKAGE_FOLDER = fileURLToPath(new URL("../../../python", import.meta.url));
const PASSED_ON = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"];

/** The worker ends itself at its time limit and says where it was stuck; this much later it is killed. */
const KILL_AFTER_MS = 1000;
/** A detached process that a task started may hold the pipes open for ever. */
const LAST_WORDS_MS = 200;

/** Thrown when there is no answer because the process is gone. */
export class ProcessEnded extends Error {
  readonly timedOut: boolean;
  /** What it printed last. */
  readonly lastLines: readonly string[];

  constructor(how: string, lastLines: readonly string[], timedOut: boolean) {
    super(how);
    this.lastLines = lastLines;
    this.timedOut = timedOut;
  }
}

interface Pending {
  readonly overdueAt: number;
  resolve(line: string): void;
  reject(error: ProcessEnded): void;
}

/** One Python worker process: each request is a line, and so is each reply. One at a time. */
export class PythonProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lastLines: LastLines;
  readonly #gone: Promise<void>;
  /** How it ended. */
  #end: string | undefined;
  #pending: Pending | undefined;
  #chunks: Buffer[] = [];

  constructor(options: PythonOptions) {
    const { program, folder, memoryLimitMib } = options;
    this.#lastLines = new LastLines(options.printed);
    this.#child = spawn(program, ["-m", "vitrina_tasks.host", folder, "--memory-mib", String(memoryLimitMib)], {
      // Python looks for modules where it is started; the tasks' own folder is added by the host.
      cwd: PACKAGE_FOLDER,
      env: workerEnvironment(options.environment),
      stdio: ["pipe", "pipe", "pipe"],
      // A process group of its own, so that everything a task started can be killed with it.
      detached: true,
    });
    this.#child.stdout.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#child.stderr.on("data", (chunk: Buffer) => this.#lastLines.add(chunk));
    // How the process ended tells more than a broken pipe.
    this.#child.stdin.on("error", () => undefined);
    this.#child.on("error", () => undefined);
    this.#gone = this.#untilGone();
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /**
   * Rejects with what the worker reported. Rejects with ProcessEnded, or with the signal's reason, when there is no
   * answer; the process is gone then.
   */
  async request<Type extends RequestType>(
    type: Type,
    body: object,
    timeLimitMs: number,
    signal?: AbortSignal,
  ): Promise<Reply<Type>> {
    const answer = this.#send({ type, time_limit_s: timeLimitMs / 1000, ...body }, timeLimitMs);
    const timeoutError = (): Error => this.#ended("was killed", true);
    try {
      const line = await withinLimits(answer, { signal, timeoutMs: timeLimitMs + KILL_AFTER_MS, timeoutError });
      return parseReply(type, line);
    } catch (error) {
      if (error instanceof VitrinaError) throw error;
      await this.kill();
      throw error instanceof UnreadableReply ? this.#ended("answered garbage", false) : error;
    } finally {
      this.#pending = undefined;
    }
  }

  /** Kills the process and what it started; resolves when it is gone. */
  async kill(): Promise<void> {
    // Another process may have the id of one that has ended.
    if (this.#end === undefined) this.#killGroup();
    await this.#gone;
  }

  #send(message: object, timeLimitMs: number): Promise<string> {
    if (this.#end !== undefined) return Promise.reject(this.#ended(this.#end, false));
    return new Promise((resolve, reject) => {
      this.#pending = { overdueAt: performance.now() + timeLimitMs, resolve, reject };
      this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    });
  }

  #receive(chunk: Buffer): void {
    const end = chunk.indexOf("\n");
    this.#chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
    if (end === -1) return;
    const line = Buffer.concat(this.#chunks).toString("utf8");
    this.#chunks = [];
    this.#pending?.resolve(line);
  }

  async #untilGone(): Promise<void> {
    const closed = once(this.#child, "close").catch(() => undefined);
    const how = await once(this.#child, "exit").then(
      ([code, signal]) => (signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`),
      (error: Error) => `could not be started (${error.message})`,
    );
    const timedOut = performance.now() >= (this.#pending?.overdueAt ?? Number.POSITIVE_INFINITY);
    this.#end = how;
    this.#killGroup();
    await Promise.race([closed, delay(LAST_WORDS_MS)]);
    this.#pending?.reject(this.#ended(how, timedOut));
  }

  #ended(how: string, timedOut: boolean): ProcessEnded {
    return new ProcessEnded(how, this.#lastLines.lines(), timedOut);
  }

  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // No such group: all gone, or a system without groups.
      this.#child.kill("SIGKILL");
    }
  }
}

function workerEnvironment(environment: PythonOptions["environment"]): Record<string, string> {
  const passed = PASSED_ON.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(passed),
    PYTHONUNBUFFERED: "1",
    PYTHONUTF8: "1",
    // The folder of tasks may be read-only, or in Git.
    PYTHONDONTWRITEBYTECODE: "1",
  };
}
