import type { Terminal } from "./terminal.ts";
import { cut, printable } from "./terminal-text.ts";

/** Something that goes on, as one line each. */
export interface ProgressDisplay {
  /** `step` names what is worth a line of its own where lines cannot be drawn over. */
  show(lines: readonly ProgressLine[]): void;
  /** A sentence between the lines. */
  say(sentence: string): void;
}

export interface ProgressLine {
  readonly name: string;
  readonly step: string;
  readonly text: string;
}

/** In a log a line each so often shows that it goes on, without filling it. */
const SAY_AGAIN_MS = 10_000;

/** Lines that are drawn over on a terminal, and plain lines elsewhere. */
export function openProgress(terminal: Terminal, lineCount: number): ProgressDisplay {
  const area = terminal.liveArea;
  return area !== undefined && lineCount < area.height ? liveProgress(terminal, area.width) : plainProgress(terminal);
}

function liveProgress(terminal: Terminal, width: number): ProgressDisplay {
  let drawn = 0;
  return {
    show(lines) {
      const up = drawn === 0 ? "" : `\x1b[${drawn}A`;
      // One place less: a full line would begin the next one on some terminals.
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
