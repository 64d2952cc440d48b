import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { ERROR_CATALOGUE, type ErrorCode } from "../../src/domain/error-catalogue.ts";
import { expectGenerated, markdownTable } from "../support/generated-page.ts";

const PAGE = new URL("../../docs/ERRORS.md", import.meta.url);
const CATALOGUE = new URL("../../src/domain/error-catalogue.ts", import.meta.url);

interface Section {
  readonly title: string;
  readonly codes: ErrorCode[];
}

/** The comments of the catalogue divide it into sections. */
async function readSections(): Promise<Section[]> {
  const sections: Section[] = [];
  for (const line of (await readFile(CATALOGUE, "utf8")).split("\n")) {
    const title = /^ {2}\/\/ (.+)$/.exec(line)?.[1];
    if (title !== undefined) sections.push({ title, codes: [] });
    const code = /^ {2}([A-Z_]+): entry\(/.exec(line)?.[1];
    if (code !== undefined) sections.at(-1)?.codes.push(code as ErrorCode);
  }
  return sections;
}

function rowOf(code: ErrorCode): string[] {
  const { status, retry, title, hint } = ERROR_CATALOGUE[code];
  return [`\`${code}\``, String(status), `${title}.`, hint.replaceAll("<", "&lt;"), retry];
}

it("docs/ERRORS.md tells every error of the catalogue (UPDATE_DOCS=1 writes it anew)", async () => {
  const sections = await readSections();
  expect(sections.flatMap(({ codes }) => codes)).toEqual(Object.keys(ERROR_CATALOGUE));
  const head = ["code", "HTTP", "meaning", "what to do", "a run"];
  const parts = sections.map(({ title, codes }) => `\n## ${title}\n\n${markdownTable(head, codes.map(rowOf))}`);
  await expectGenerated(PAGE, `${parts.join("")}\n`);
});
