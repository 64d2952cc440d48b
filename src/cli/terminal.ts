import { createInterface } from "node:readline/promises";
import { EXIT } from "./failure.ts";
import type { Host, Output } from "./host.ts";
import { printableLines } from "./terminal-text.ts";

/** Data goes to standard output, everything that is said about it to standard error. */
export interface Terminal {
  /** Undefined where standard output is a file or a pipe. */
  readonly width: number | undefined;
  /** Where lines may be drawn over; undefined where standard error is a file or a pipe. */
  readonly liveArea: { readonly width: number; readonly height: number } | undefined;
  print(text: string): void;
  say(text: string): void;
  /** As it is, with control characters. */
  draw(text: string): void;
  /** Undefined where nobody can be asked. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
}

const USUAL_SIZE = { width: 80, height: 24 };

export function openTerminal({ stdin, stdout, stderr }: Host, canRedraw: boolean): Terminal {
  return {
    width: stdout.isTTY ? stdout.columns || USUAL_SIZE.width : undefined,
    liveArea:
      stderr.isTTY && canRedraw
        ? { width: stderr.columns || USUAL_SIZE.width, height: stderr.rows || USUAL_SIZE.height }
        : undefined,
    print: (text) => void stdout.write(`${text}\n`),
    say: (text) => void stderr.write(`${printableLines(text)}\n`),
    draw: (text) => void stderr.write(text),
    ask: stdin.isTTY && stderr.isTTY ? (question) => askOnTerminal(stdin, stderr, question) : undefined,
  };
}

async function askOnTerminal(input: Host["stdin"], output: Output, question: string): Promise<string> {
  const prompt = createInterface({ input, output });
  prompt.once("SIGINT", () => process.exit(EXIT.interrupted));
  // Ctrl-D leaves the question without an answer.
  const closed = new Promise<string>((resolve) => prompt.once("close", () => resolve("")));
  try {
    return await Promise.race([prompt.question(question), closed]);
  } finally {
    prompt.close();
  }
}

/** Whoever reads may stop reading, as `head` does: that is no error of ours. A server stops as if it were asked to. */
export function tolerateClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      if (process.listenerCount("SIGTERM") === 0) process.exit();
      process.kill(process.pid, "SIGTERM");
    });
  }
}
