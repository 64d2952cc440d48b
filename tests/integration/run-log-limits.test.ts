import { describe, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import type { LogLevel } from "../../src/domain/log-level.ts";
import type { NewRunLogLine } from "../../src/domain/run-log.ts";
import { keptFields, RunLogs } from "../../src/observability/run-logs.ts";
import { recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** How the lines of runs are gathered, and what is left out when they cannot be written. */

const RUN = "0b7a2c4e-6c1f-4f63-9a53-6f2f0a2a9d11";
const OTHER = "6d5e2f0a-0000-4000-8000-000000000002";

function opened(write: (lines: readonly NewRunLogLine[]) => Promise<void>, level: LogLevel = "info") {
  const log = recordingLog();
  return { log, logs: new RunLogs({ level, log, write }) };
}

/** A database that keeps lines, unless it is told to fail. */
function database() {
  const kept: NewRunLogLine[] = [];
  const state = { writes: 0, trouble: undefined as Error | undefined };
  const write = async (lines: readonly NewRunLogLine[]): Promise<void> => {
    state.writes += 1;
    if (state.trouble !== undefined) throw state.trouble;
    kept.push(...lines);
  };
  return { kept, state, write };
}

const away = new VitrinaError("DATABASE_UNAVAILABLE", "It is away.");
const refused = new VitrinaError("PERMISSION_DENIED", "It may not.");

describe("lines of runs", () => {
  it("are written in bulk: many lines of several runs, few writes", async () => {
    const { kept, state, write } = database();
    const { logs } = opened(write);
    const books = [logs.open(RUN), logs.open(OTHER)];
    for (let n = 0; n < 400; n += 1) for (const book of books) book.add("info", { n }, "batch committed");
    for (const book of books) book.end();
    await logs.close();
    expect(kept.filter(({ runId }) => runId === OTHER).map(({ fields }) => JSON.parse(fields).n)).toEqual(
      Array.from({ length: 400 }, (_, n) => n),
    );
    expect(kept).toHaveLength(800);
    expect(state.writes).toBeLessThan(5);
  });

  it("are kept from the level on that is asked for", async () => {
    const { kept, write } = database();
    const add = (logs: RunLogs): void => {
      const book = logs.open(RUN);
      for (const level of ["debug", "info", "warn", "error"] as const) book.add(level, {}, level);
      book.end();
    };
    const all = (["debug", "warn", "silent"] as const).map((level) => opened(write, level).logs);
    for (const logs of all) {
      add(logs);
      await logs.close();
    }
    expect(kept.map(({ message }) => message)).toEqual(["debug", "info", "warn", "error", "warn", "error"]);
  });

  it("wait for a database that is away, and keep their order", async () => {
    const { kept, state, write } = database();
    const { logs, log } = opened(write);
    const book = logs.open(RUN);
    state.trouble = away;
    book.add("error", { n: 1 }, "first");
    await until("it was tried", () => state.writes > 0);
    book.add("info", { n: 2 }, "second");
    await until("it was tried again", () => state.writes > 1);
    state.trouble = undefined;
    await until("it is written", () => kept.length === 2);
    expect(kept.map(({ message }) => message)).toEqual(["first", "second"]);
    expect(log.entries.filter(({ level }) => level === "warn")).toHaveLength(1);
    await logs.close();
    expect(logs.lost).toBe(0);
  });

  it("take bounded memory while it is away, and say afterwards what was left out", async () => {
    const { kept, state, write } = database();
    const { logs } = opened(write);
    state.trouble = away;
    const books = Array.from({ length: 20 }, (_, n) => logs.open(`${n}`));
    for (let n = 0; n < 990; n += 1) for (const book of books) book.add("info", { n }, "batch committed");
    state.trouble = undefined;
    for (const book of books) {
      book.add("error", {}, "run failed");
      book.end();
    }
    await logs.close();
    // 5000 that waited, and of each run the notice, the count, and the last hundred.
    expect(kept).toHaveLength(5000 + 20 * 102);
    for (let run = 0; run < 20; run += 1) {
      const lines = kept.filter(({ runId }) => runId === `${run}`);
      const leftOut = lines.find(({ message }) => message === "lines were left out here");
      expect(lines.length - 2 + JSON.parse(leftOut?.fields as string).lines).toBe(991);
      expect(lines.at(-1)?.message).toBe("run failed");
    }
  });

  it("are lost, counted and told of when the database refuses them, and what follows is written", async () => {
    const { kept, state, write } = database();
    const { logs, log } = opened(write);
    const book = logs.open(RUN);
    state.trouble = refused;
    book.add("info", {}, "one");
    book.add("error", {}, "two");
    await until("they are lost", () => logs.lost === 2);
    expect(log.entries).toMatchObject([
      { level: "error", message: "lines of run logs were lost", fields: { lines: 2 } },
    ]);
    state.trouble = undefined;
    book.add("info", {}, "three");
    book.end();
    await logs.close();
    expect(kept.map(({ message }) => message)).toEqual(["three"]);
  });

  it("do not keep a runner from stopping", async () => {
    const { logs, log } = opened(() => new Promise(() => undefined));
    logs.open(RUN).add("info", {}, "one");
    await logs.close();
    expect(logs.lost).toBe(1);
    expect(log.has("lines of run logs were lost")).toBe(true);
  });
});

describe("the fields of a kept line", () => {
  it("have no secrets, whatever they look like, and stay JSON", () => {
    const fields = keptFields({ url: "postgres://ann:s3cret@db/cinema", password: "s3cret", token: 12345, n: 1 });
    expect(fields).not.toContain("s3cret");
    expect(fields).not.toContain("12345");
    expect(() => JSON.parse(fields)).not.toThrow();
  });

  it("are short: a long text is cut, but only after secrets are gone", () => {
    const long = `${"x".repeat(960)} postgres://ann:${"s3cret".repeat(2000)}@db`;
    const fields = JSON.parse(keptFields({ long, more: "y".repeat(20_000), code: "INTERNAL" }));
    expect(fields).toMatchObject({ code: "INTERNAL", more: `${"y".repeat(999)}…` });
    expect(fields.long).not.toContain("s3cret");
    const many = keptFields(Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`f${n}`, "ж".repeat(900)])));
    expect(Buffer.byteLength(many)).toBeLessThanOrEqual(8192);
    expect(JSON.parse(many)).toEqual({ fields_left_out: expect.any(String) });
  });

  it("tell an error without its stack", () => {
    const fields = JSON.parse(keptFields({ err: new VitrinaError("INTERNAL", "It broke.") }));
    expect(fields.err).toMatchObject({ code: "INTERNAL", message: "It broke." });
    expect(JSON.stringify(fields)).not.toMatch(/\.ts:\d|\.js:\d/);
  });

  it("never fail, whatever they are", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    for (const odd of [circle, { big: 1n }, { half: "\ud800", nul: "\u0000" }]) {
      expect(() => JSON.parse(keptFields(odd))).not.toThrow();
    }
  });
});
