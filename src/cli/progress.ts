import type { Terminal } from "./terminal.ts";
import { cut, printable } from "./terminal-text.ts";

/** Shows progress, one line for each thing. */
export interface ProgressDisplay {
  /** Where lines cannot be redrawn, a change of `step` prints a new line. */
  show(lines: readonly ProgressLine[]): void;
  /** A sentence between the lines. */
  say(sentence: string): void;
}

export interface ProgressLine {
  readonly name: string;
  readonly step: string;
  readonly text: string;
}

/** Where lines cannot be redrawn, an occasional one shows progress without flooding the log. */
const SAY_AGAIN_MS = 10_000;

/** Redrawn lines on a terminal, plain lines elsewhere. */
export function openProgress(terminal: Terminal, lineCount: number): ProgressDisplay {
  const area = terminal.liveArea;
  return area !== undefined && lineCount < area.height ? liveProgress(terminal, area.width) : plainProgress(terminal);
}

function liveProgress(terminal: Terminal, width: number): ProgressDisplay {
  let drawn = 0;
  return {
    show(lines) {
      const up = drawn === 0 ? "" : `\x1b[${drawn}A`;
      // One column less: on some terminals a full line wraps.
      const texts = lines.map(({ name, text }) => `\x1b[2K${cut(printable(`${name}  ${text}`), width - 1)}\n`);
      terminal.draw(`${up}\r${texts.join("")}`);
      drawn = lines.length;
    },
    say(sentence) {
      terminal.say(sentence);
      drawn = 0;
    },
  };
}

function plainProgress(terminal: Terminal): ProgressDisplay {
  const said = new Map<string, { readonly step: string; readonly text: string; readonly at: number }>();
  return {
    show(lines) {
      const now = performance.now();
      for (const { name, step, text } of lines) {
        const last = said.get(name);
        const isNew = last?.step !== step || (last.text !== text && now - last.at >= SAY_AGAIN_MS);
        if (!isNew) continue;
        terminal.say(`${name}: ${text}`);
        said.set(name, { step, text, at: now });
      }
    },
    say: terminal.say,
  };
}
