import { createInterface } from "node:readline/promises";
import { EXIT } from "./failure.ts";
import type { Host, Output } from "./host.ts";
import { printableLines } from "./terminal-text.ts";

/** Data goes to standard output, messages to standard error. */
export interface Terminal {
  /** Undefined if standard output is a file or a pipe. */
  readonly width: number | undefined;
  /** Where lines can be redrawn; undefined if standard error is a file or a pipe. */
  readonly liveArea: { readonly width: number; readonly height: number } | undefined;
  print(text: string): void;
  say(text: string): void;
  /** Written as it is, including control characters. */
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
  // Ctrl-D closes the prompt without an answer.
  const closed = new Promise<string>((resolve) => prompt.once("close", () => resolve("")));
  try {
    return await Promise.race([prompt.question(question), closed]);
  } finally {
    prompt.close();
  }
}
