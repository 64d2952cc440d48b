import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { expectGenerated, markdownTable } from "../support/generated-page.ts";

const FOLDER = new URL("../../docs/decisions/", import.meta.url);
const files = readdirSync(FOLDER)
  .filter((file) => file !== "README.md")
  .sort();

const HEAD = /^# (\d{4}) (.+)\n\nStatus: (.+)\n\n## /;
/** A page that replaces another names itself there; the links test sees that it exists. */
const STATUS = /^(?:accepted|(?:accepted, partly )?replaced by \[(\d{4})\]\(\1-[\w-]+\.md\))$/;

function decisionIn(file: string): { number: string; title: string; status: string; sections: string[] } {
  const text = readFileSync(new URL(file, FOLDER), "utf8");
  const [, number = "", title = "", status = ""] = HEAD.exec(text) ?? [];
  return { number, title, status, sections: [...text.matchAll(/^## (.+)$/gm)].map(([, name]) => name as string) };
}

describe("docs/decisions", () => {
  it.each(files)("%s has the layout of a decision", (file) => {
    const { number, status, sections } = decisionIn(file);
    expect({ number, status }).toEqual({ number: file.slice(0, 4), status: expect.stringMatching(STATUS) });
    expect(sections).toEqual(["Context", "Decision", "Consequences"]);
  });

  it("has no number twice", () => {
    const numbers = files.map((file) => file.slice(0, 4));
    expect(numbers).toEqual([...new Set(numbers)]);
  });

  it("lists every decision with its status (UPDATE_DOCS=1 writes the list)", async () => {
    const rows = files.map((file) => {
      const { number, title, status } = decisionIn(file);
      return [number, `[${title}](${file})`, status];
    });
    await expectGenerated(new URL("README.md", FOLDER), `\n${markdownTable(["number", "decision", "status"], rows)}\n`);
  });
});
