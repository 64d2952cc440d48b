import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A path from the root of the repository, as pages write it in code. */
const FILE_IN_CODE = /`((?:src|tests|docs|examples|python|scripts|benches|bin)\/[\w./-]+)`/g;

/** Every page of the repository, also one that is not committed yet. */
const pages = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => file !== "" && existsSync(join(ROOT, file)));

/** What is in code is not a link, and not a heading. */
function prose(file: string): string {
  return readFileSync(file, "utf8")
    .replace(/^ *```.*?^ *```$/gms, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ""));
}

function linksOf(file: string): string[] {
  return [...prose(file).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link as string)
    .filter((link) => !/^[a-z]+:/.test(link));
}

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(file: string): string[] {
  const seen = new Map<string, number>();
  return [...prose(file).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const anchor = plain
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
      .replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

function isBroken(page: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? join(ROOT, page) : resolve(ROOT, dirname(page), decodeURIComponent(path));
  if (!existsSync(target)) return true;
  return anchor !== undefined && !anchorsOf(target).includes(decodeURIComponent(anchor));
}

describe("the links of all pages", () => {
  it.each(pages)("%s leads to what exists", (page) => {
    const broken = linksOf(join(ROOT, page)).filter((link) => isBroken(page, link));
    expect(broken).toEqual([]);
  });

  it.each(pages)("%s names only files that exist", (page) => {
    const named = [...readFileSync(join(ROOT, page), "utf8").matchAll(FILE_IN_CODE)].map(([, file]) => file as string);
    // NNNN stands for a number that somebody has yet to choose.
    expect(named.filter((file) => !file.includes("NNNN") && !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it("are looked at", () => {
    expect(pages).toContain("README.md");
    expect(pages.flatMap((page) => linksOf(join(ROOT, page))).length).toBeGreaterThan(50);
  });

  it("reach every page below docs from docs/README.md", () => {
    const index = linksOf(join(ROOT, "docs/README.md")).map((link) => join("docs", link.split("#")[0] ?? ""));
    const listed = (page: string): boolean => index.includes(page) || /^docs\/decisions\/\d/.test(page);
    expect(pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md" && !listed(page))).toEqual([]);
  });
});
