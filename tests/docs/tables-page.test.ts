import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";

const read = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), "utf8");

/** Tables and their columns as the golden dump of the schema has them. */
async function schemaTables(): Promise<Map<string, string[]>> {
  const dump = await read("tests/schema.sql");
  return new Map(
    [...dump.matchAll(/^table (\S+)\n((?: {2}.*\n)+)/gm)].map(([, name = "", columns = ""]) => [
      name,
      [...columns.matchAll(/^ {2}(\S+) /gm)].map(([, column]) => column as string),
    ]),
  );
}

/** Headings name tables; the first cells of the rows below name columns, several separated by commas. */
async function documentedTables(): Promise<Map<string, string[]>> {
  const sections = (await read("docs/TABLES.md")).split(/^## /m).filter((section) => section.startsWith("etl."));
  return new Map(
    sections.map((section) => [
      section.split("\n")[0] ?? "",
      [...section.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = ""]) =>
        [...cell.matchAll(/`(\w+)`/g)].map(([, column]) => column as string),
      ),
    ]),
  );
}

describe("docs/TABLES.md", () => {
  it("has every table of the meta-store, and no other", async () => {
    expect([...(await documentedTables()).keys()].sort()).toEqual([...(await schemaTables()).keys()].sort());
  });

  it("names only columns that exist", async () => {
    const schema = await schemaTables();
    for (const [table, columns] of await documentedTables()) {
      expect(columns.length, table).toBeGreaterThan(0);
      expect(
        columns.filter((column) => !schema.get(table)?.includes(column)),
        table,
      ).toEqual([]);
    }
  });
});
