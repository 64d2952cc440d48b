import { describe, expect, it } from "vitest";
import { cut, formatTable, printable, printableLines, textWidth } from "../../src/cli/terminal-text.ts";
import { age, clock } from "../../src/cli/words.ts";

describe("textWidth", () => {
  it.each([
    ["film", 4],
    ["фильм", 5],
    ["映画", 4],
    ["한국어", 6],
    ["e\u0301te\u0301", 3],
    ["👩‍👩‍👧", 2],
    ["🎬", 2],
    ["\u200b", 0],
    ["", 0],
  ])("%j takes %i places", (text, width) => {
    expect(textWidth(text)).toBe(width);
  });
});

describe("cut", () => {
  it("keeps what fits, and never half a character", () => {
    expect(cut("film", 4)).toBe("film");
    expect(cut("films", 4)).toBe("fil…");
    expect(cut("映画館", 4)).toBe("映…");
    expect(cut("映画館", 5)).toBe("映画…");
    expect(cut("e\u0301te\u0301s", 3)).toBe("e\u0301t…");
  });
});

describe("printable", () => {
  it("lets no value steer the terminal or leave its line", () => {
    expect(printable("a\x1b[31mb\r\n\tc\u009bd\u202ee")).toBe("a\\u001b[31mb\\r\\n\\tc\\u009bd\\u202ee");
    expect(printableLines("a\nb\x07")).toBe("a\nb\\u0007");
  });
});

describe("formatTable", () => {
  const columns = [{ title: "NAME" }, { title: "ROWS", align: "right" }, { title: "TEXT" }] as const;
  const rows = [
    ["映画", "1", "short"],
    ["b", "1,000", "a very long text that does not fit"],
  ];

  it("aligns by what is seen, and cuts nothing in a file", () => {
    expect(formatTable(columns, rows, undefined).split("\n")).toEqual([
      "NAME   ROWS  TEXT",
      "映画      1  short",
      "b     1,000  a very long text that does not fit",
    ]);
  });

  it("takes from the widest column on a terminal", () => {
    expect(formatTable(columns, rows, 25).split("\n")).toEqual([
      "NAME   ROWS  TEXT",
      "映画      1  short",
      "b     1,000  a very long…",
    ]);
  });

  it("cuts the line where even that is not enough", () => {
    for (const line of formatTable(columns, rows, 10).split("\n")) expect(textWidth(line)).toBeLessThanOrEqual(10);
  });
});

describe("times", () => {
  const now = new Date("2026-01-31T12:00:00Z");
  it.each([
    ["2026-01-31T12:00:05Z", "0 s ago"],
    ["2026-01-31T11:59:01Z", "59 s ago"],
    ["2026-01-31T11:01:00Z", "59 min ago"],
    ["2026-01-30T12:30:00Z", "23 h ago"],
    ["2025-01-31T12:00:00Z", "365 d ago"],
  ])("%s is %s", (time, text) => {
    expect(age(time, now)).toBe(text);
  });

  it("show a duration as a clock", () => {
    expect([0, 59_999, 60_000, 3_723_000].map(clock)).toEqual(["0:00", "0:59", "1:00", "1:02:03"]);
  });
});
