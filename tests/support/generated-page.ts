import { readFile, writeFile } from "node:fs/promises";
import { expect } from "vitest";

const GENERATED = /(?<=<!-- generated -->\n).*(?=<!-- end of the generated part -->)/s;

/** Compares the generated part of a page with what it should be; UPDATE_DOCS=1 rewrites it. */
export async function expectGenerated(page: URL, content: string): Promise<void> {
  const text = await readFile(page, "utf8");
  if (process.env["UPDATE_DOCS"] === "1")
    await writeFile(
      page,
      text.replace(GENERATED, () => content),
    );
  expect(GENERATED.exec(await readFile(page, "utf8"))?.[0]).toBe(content);
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(escapeCell).join(" | ")} |\n`).join("");
}

function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|");
}
