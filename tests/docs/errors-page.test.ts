import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { CONNECTORS } from "../../src/connectors/registry.ts";
import { type CatalogueEntry, ERROR_CATALOGUE } from "../../src/domain/error-catalogue.ts";
import { expectGenerated, markdownTable } from "../support/generated-page.ts";

const PAGE = new URL("../../docs/ERRORS.md", import.meta.url);
const CATALOGUE = new URL("../../src/domain/error-catalogue.ts", import.meta.url);

interface Section {
  readonly title: string;
  readonly errors: (readonly [code: string, entry: CatalogueEntry])[];
}

/** The comments of the catalogue divide it into sections. */
async function readSections(): Promise<Section[]> {
  const sections: Section[] = [];
  for (const line of (await readFile(CATALOGUE, "utf8")).split("\n")) {
    const title = /^ {2}\/\/ (.+)$/.exec(line)?.[1];
    if (title !== undefined) sections.push({ title, errors: [] });
    const code = /^ {2}([A-Z_]+): entry\(/.exec(line)?.[1];
    if (code !== undefined) sections.at(-1)?.errors.push([code, ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE]]);
  }
  return sections;
}

/** Those that only one connector knows. */
const ofConnectors: readonly Section[] = CONNECTORS.sinks.map(({ settings, errors }) => ({
  title: settings.section,
  errors: Object.entries(errors),
}));

function rowOf([code, { status, retry, title, hint }]: Section["errors"][number]): string[] {
  return [`\`${code}\``, String(status), `${title}.`, hint.replaceAll("<", "&lt;"), retry];
}

it("docs/ERRORS.md tells every error of the catalogue (UPDATE_DOCS=1 rewrites it)", async () => {
  const sections = await readSections();
  expect(sections.flatMap(({ errors }) => errors)).toEqual(Object.entries(ERROR_CATALOGUE));
  const head = ["code", "HTTP", "meaning", "what to do", "a run"];
  const parts = [...sections, ...ofConnectors].map(
    ({ title, errors }) => `\n## ${title}\n\n${markdownTable(head, errors.map(rowOf))}`,
  );
  await expectGenerated(PAGE, `${parts.join("")}\n`);
});
