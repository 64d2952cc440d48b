import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { noteProcess } from "./left-processes.ts";
import { until } from "./until.ts";

const COMMAND = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));

/** A real process of the built program. What it prints is kept, so that a test can wait for a line. */
export interface VitrinaProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  output(): string;
  /** Resolves when the output contains the text; fails at once when the process ends before. */
  untilPrinted(text: string | RegExp): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves with the exit code, or the signal's name. */
  exited: Promise<number | string>;
  stop(): Promise<number | string>;
}

export interface SpawnOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly uid?: number;
}

export function spawnVitrina(args: string[], options: SpawnOptions = {}): VitrinaProcess {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(options.uid !== undefined && { uid: options.uid, gid: options.uid }),
  });
  noteProcess(child.pid);
  let output = "";
  const collect = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  let ended: number | string | undefined;
  const exited = once(child, "close").then(([code, signal]) => {
    ended = (code ?? signal) as number | string;
    return ended;
  });
  return {
    child,
    pid: child.pid as number,
    output: () => output,
    exited,
    async untilPrinted(text) {
      const found = (): boolean => (typeof text === "string" ? output.includes(text) : text.test(output));
      await until(`${args[0]} prints ${String(text)}`, () => {
        if (!found() && ended !== undefined) throw new Error(`${args[0]} ended with ${ended}:\n${output}`);
        return found();
      });
    },
    signal: (signal) => void child.kill(signal),
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

/** The environment of an API or a runner: no administrator's URL, as in production. */
export function roleEnvironment(urls: { reader: string; writer: string; meta: string }): Record<string, string> {
  return { READER_DATABASE_URL: urls.reader, WRITER_DATABASE_URL: urls.writer, META_DATABASE_URL: urls.meta };
}
