import { StringDecoder } from "node:string_decoder";

const KEPT_LINES = 40;
const LONGEST_LINE = 500;

/** Reads what a process prints and remembers the end of it, in bounded memory. */
export class LastLines {
  readonly #decoder = new StringDecoder("utf8");
  readonly #printed: (line: string) => void;
  readonly #lines: string[] = [];
  #open = "";

  constructor(printed: (line: string) => void) {
    this.#printed = printed;
  }

  add(chunk: Buffer): void {
    const [first = "", ...rest] = this.#decoder.write(chunk).split("\n");
    // A line without an end must not fill the memory.
    this.#open = (this.#open + first).slice(0, LONGEST_LINE);
    for (const begin of rest) {
      this.#finish(this.#open);
      this.#open = begin.slice(0, LONGEST_LINE);
    }
  }

  #finish(line: string): void {
    if (line.trim() === "") return;
    this.#printed(line);
    this.#lines.push(line);
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
  }

  lines(): readonly string[] {
    return [...this.#lines, this.#open].filter((line) => line !== "");
  }
}
