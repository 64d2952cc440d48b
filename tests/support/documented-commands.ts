import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A command of a page, and the answer that the page shows for it. */
export interface DocumentedCommand {
  readonly command: string;
  readonly answer: string | undefined;
}

/** Every `sh` block of a page, in order; a `json` block that follows before the next one is its answer. */
export function documentedCommands(page: string): DocumentedCommand[] {
  const blocks = [...page.matchAll(/^```(sh|json)\n(.*?)^```$/gms)].map(([, kind, text]) => ({
    kind,
    text: text ?? "",
  }));
  return blocks.flatMap(({ kind, text }, index) => {
    if (kind !== "sh") return [];
    const next = blocks[index + 1];
    return [{ command: text, answer: next?.kind === "json" ? next.text : undefined }];
  });
}

/** As a reader would: one shell after the other, each knowing what the ones before exported. */
export class Shell {
  #exports = "";

  readonly #replace: (command: string) => string;

  constructor(replace: (command: string) => string) {
    this.#replace = replace;
  }

  async run(command: string): Promise<string> {
    const text = this.#replace(command);
    const { stdout } = await run("bash", ["-euc", `${this.#exports}\n${text}`], { maxBuffer: 2 ** 24 });
    if (text.startsWith("export ")) this.#exports += text;
    return stdout;
  }
}

/** True when everything that the page shows is in the answer; `…` stands for any text, and lists may be longer. */
export function shows(documented: unknown, actual: unknown): boolean {
  if (typeof documented === "string" && documented.includes("…")) return typeof actual === "string";
  if (Array.isArray(documented)) {
    return Array.isArray(actual) && documented.every((item) => actual.some((candidate) => shows(item, candidate)));
  }
  if (typeof documented === "object" && documented !== null) {
    if (typeof actual !== "object" || actual === null) return false;
    return Object.entries(documented).every(([name, value]) => shows(value, (actual as Record<string, unknown>)[name]));
  }
  return documented === actual;
}
