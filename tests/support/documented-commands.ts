/**
 * The commands of a page, as its fences mark them. The words after `sh` are not shown to readers:
 * - `sh`: runs and succeeds. `sh fails`: runs and is refused.
 * - `sh stays`: keeps running, such as `npm start`; the next command comes when it says how to stop it.
 * - `sh not-run`: needs what a test does not have, such as another host.
 */
const KINDS = ["runs", "fails", "stays", "not-run"] as const;

export interface DocumentedCommand {
  readonly kind: (typeof KINDS)[number];
  readonly command: string;
  /** What the page shows as its answer: JSON, or text as a terminal shows it. */
  readonly answer: { readonly form: "json" | "text"; readonly text: string } | undefined;
}

interface Block {
  readonly language: string;
  readonly word: string;
  readonly text: string;
}

/** Every `sh` block of a page, in order; a `json` or `text` block that is the next one is its answer. */
export function documentedCommands(page: string): DocumentedCommand[] {
  const blocks = codeBlocks(page);
  return blocks.flatMap(({ language, word, text }, index) => {
    if (language !== "sh") return [];
    const kind = KINDS.find((known) => known === (word === "" ? "runs" : word));
    if (kind === undefined) throw new Error(`A fence says "sh ${word}", which nobody knows.`);
    return [{ kind, command: text, answer: answerOf(blocks[index + 1]) }];
  });
}

function answerOf(next: Block | undefined): DocumentedCommand["answer"] {
  if (next?.language !== "json" && next?.language !== "text") return undefined;
  return { form: next.language, text: next.text };
}

/** Every fenced block of a page, also one that belongs to an item of a list. */
function codeBlocks(page: string): Block[] {
  return [...page.matchAll(/^( *)```(\w*) *([^\n]*)\n(.*?)^\1```$/gms)].map(([, indent, language, word, text]) => ({
    language: language ?? "",
    word: word ?? "",
    text: (text ?? "").replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
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

/** True when the page shows what was printed; `…` stands for any text in its line, and alone for any lines. */
export function showsText(documented: string, actual: string): boolean {
  const pattern = tidyLines(documented).map((line) => {
    if (line.trim() === "…") return "(?:[^\\n]*\\n)*";
    const escaped = line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return `${escaped.replaceAll("…", "[^\\n]*")}\\n`;
  });
  return new RegExp(`^${pattern.join("")}$`).test(`${tidyLines(actual).join("\n")}\n`);
}

/** Columns are as wide as what is in them, so the number of spaces says nothing. */
function tidyLines(text: string): string[] {
  return text
    .trim()
    .split("\n")
    .map((line) => line.trimEnd().replace(/ +/g, " "));
}
