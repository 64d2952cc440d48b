import { describe, expect, it } from "vitest";
import { documentedCommands, shows, showsText } from "../support/documented-commands.ts";

/** What runs the pages must notice when a page is wrong. */

const fence = (info: string, text: string): string => `\`\`\`${info}\n${text}\n\`\`\`\n`;

describe("the commands of a page", () => {
  it("are its sh blocks, each with the answer that stands next to it", () => {
    const page = [
      fence("sh stays", "npm start"),
      fence("text", "ready"),
      fence("sh", "one"),
      fence("sql", "SELECT 1"),
      fence("json", "{}"),
      `1. In a list:\n\n   ${fence("sh fails", "two").replaceAll("\n", "\n   ")}`,
      fence("json", '{ "code": "X" }'),
      fence("sh not-run", "three"),
    ].join("\n");
    expect(documentedCommands(page)).toEqual([
      { kind: "stays", command: "npm start\n", answer: { form: "text", text: "ready\n" } },
      { kind: "runs", command: "one\n", answer: undefined },
      { kind: "fails", command: "two\n", answer: { form: "json", text: '{ "code": "X" }\n' } },
      { kind: "not-run", command: "three\n", answer: undefined },
    ]);
  });

  it("with a word that nobody knows are a mistake", () => {
    expect(() => documentedCommands(fence("sh norun", "one"))).toThrow("sh norun");
  });
});

describe("what a page shows", () => {
  it("is found in an answer that has more", () => {
    expect(shows({ a: 1, list: [{ b: "…" }] }, { a: 1, list: [{ b: "x", c: 2 }, { b: "y" }], d: null })).toBe(true);
  });

  it.each([
    [{ a: 1 }, { a: 2 }],
    [{ a: null }, {}],
    [{ list: [{ b: 1 }] }, { list: [{ b: 2 }] }],
    [{ b: "…" }, { b: 1 }],
  ])("is not taken for the other: %j and %j", (page, answer) => {
    expect(shows(page, answer)).toBe(false);
  });

  it("may leave out text and lines by …, and does not count spaces", () => {
    expect(showsText("A  B\n…\nrow …s\nend", "A B\n1\n2\nrow 0.5 s\nend\n")).toBe(true);
    expect(showsText("…\nend", "end")).toBe(true);
  });

  it.each([
    ["A\nB", "A"],
    ["A", "A\nB"],
    ["A …", "B 1"],
    ["a.c", "abc"],
    ["…\nend", "end\nmore"],
  ])("is not taken for another text: %j and %j", (page, printed) => {
    expect(showsText(page, printed)).toBe(false);
  });
});
