import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textWidth } from "../../src/cli/terminal-text.ts";
import { type CliBench, COMMAND, openCliBench } from "../support/cli.ts";

/** What a person sees: the commands on a real pseudo-terminal of 60 columns. */

const ON_TERMINAL = fileURLToPath(new URL("../support/on-terminal.py", import.meta.url));
const WIDTH = 60;

let bench: CliBench;
beforeAll(async () => {
  bench = await openCliBench();
  await bench.startApi();
  await bench.startRunner();
  await bench.create("film", { description: `Фильмы 映画 ${"и ещё ".repeat(30)}` });
});
const started: ChildProcess[] = [];
afterAll(async () => {
  for (const child of started) child.kill();
  await bench?.stop();
});

async function onTerminal(args: string[], { keys = "", term = "xterm" } = {}): Promise<{ code: number; seen: string }> {
  const child = spawn("python3", [ON_TERMINAL, keys, process.execPath, COMMAND, ...args], {
    cwd: bench.folder,
    env: { PATH: process.env["PATH"], VITRINA_API_URL: bench.url, TERM: term },
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  let seen = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => {
    seen += chunk;
  });
  const [code] = await once(child, "close");
  return { code, seen };
}

describe("on a terminal", () => {
  it("cuts a table to its width, and only there", async () => {
    const { seen } = await onTerminal(["list"]);
    const lines = seen.trimEnd().split("\r\n");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^film +IDLE +full +analytics\.film .*…$/);
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(WIDTH);
    expect((await bench.cli(["list"])).stdout).toContain("и ещё ".repeat(30).trimEnd());
  });

  it("draws one line over and over while it waits, and the summary below it", async () => {
    const { code, seen } = await onTerminal(["run", "film", "--wait"]);
    expect(code).toBe(0);
    const drawn = seen.split("\x1b[1A\r\x1b[2K");
    expect(drawn.length).toBeGreaterThan(2);
    expect(drawn.slice(1, -1).every((part) => /^film {2}[^\n]*\r\n$/.test(part))).toBe(true);
    const [last, ...summary] = (drawn.at(-1) ?? "").split("\r\n");
    expect(last).toMatch(/^film {2}SUCCESS {2}1,000 rows/);
    expect(summary[0]).toMatch(/^PIPELINE/);
  });

  it("moves no cursor on a terminal that cannot", async () => {
    const { code, seen } = await onTerminal(["run", "film", "--wait"], { term: "dumb" });
    expect({ code, hasEscapes: seen.includes("\x1b") }).toEqual({ code: 0, hasEscapes: false });
    expect(seen).toContain("film: SUCCESS");
  });

  it("asks before it changes a state, and does only what was answered", async () => {
    const stateOf = () => bench.database.query("SELECT s::text FROM etl.etl_state s");
    const before = await stateOf();
    const refused = await onTerminal(["state", "film", "reset"], { keys: "n\n" });
    expect(refused.code).toBe(1);
    expect(refused.seen).toMatch(/film forgets its position[\s\S]*Do it\? \[y\/N\] [\s\S]*Nothing was changed\./);
    for (const [keys, code] of [
      ["\x04", 1],
      ["\x03", 130],
    ] as const) {
      expect((await onTerminal(["state", "film", "reset"], { keys })).code).toBe(code);
    }
    expect(await stateOf()).toEqual(before);
    const done = await onTerminal(["state", "film", "reset"], { keys: "y\n" });
    expect(done.code).toBe(0);
    expect(await stateOf()).not.toEqual(before);
  });
});
