import { beforeAll, describe, expect, it } from "vitest";
import { redact } from "../../src/observability/log.ts";
import { checkQuery } from "../../src/sql-guard/guard.ts";
import { RULES } from "./fixture.ts";

/**
 * Texts that were, or could be, worth a walk over the whole of them at every sign. Each is held to a multiple of the work
 * that a harmless text of the same length makes in the same process, which is the same on a busy machine.
 */
const BYTES = 16 * 1024;

function filled(before: string, unit: string, after = ""): string {
  return before + unit.repeat(Math.floor((BYTES - before.length - after.length) / unit.length)) + after;
}

/** Of several times, the one that was disturbed least. */
async function processorMs(work: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < 5; time += 1) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

describe("the guard judges the worst text in about the time of a harmless one", () => {
  // The worst takes up to eight times as long; signs in a row that are not limited, twelve times or more.
  const FACTOR = 10;
  const judge = (query: string) => processorMs(() => checkQuery(query, RULES).catch(() => undefined));
  let harmlessMs: number;
  beforeAll(async () => {
    harmlessMs = await judge(HARMLESS);
  });
  const HARMLESS = filled("SELECT id FROM content.film_work WHERE title IN (", "'a title', ", "'z')");

  it.each([
    ["parameters", filled("SELECT $1", ",$1")],
    ["refused calls", filled("SELECT 1", ",pg_sleep(1)")],
    ["refused tables, each in a line", filled("SELECT 1 FROM auth.a", "\n,auth.a")],
    ["refused columns", filled("SELECT 1", ",a.b.*")],
    ["one column of many parts", filled("SELECT a", ".a")],
    ["common table expressions", filled("WITH a AS (SELECT 1)", ",a AS(TABLE a)", " SELECT 1")],
    ["recursive ones", filled("WITH RECURSIVE a AS (SELECT 1)", ",a AS(TABLE a)", " SELECT 1")],
    ["comments", filled("SELECT 1 ", `${"/**/".repeat(70)} `)],
    ["comments in a row", filled("SELECT 1 ", "/**/")],
    ["comments in comments", filled("SELECT 1 ", "/*")],
    ["signs", filled("SELECT 1 ", `${"+".repeat(299)} `)],
    ["signs in a row", filled("SELECT ", "+")],
    ["quotes of one's own", filled("SELECT ", "$a$")],
    ["texts that go on in the next line", filled("SELECT 'a'", "\n'a'")],
    ["brackets", filled("SELECT ", "(")],
    ["brackets that close nothing", filled("SELECT 1", ")")],
    ["ends of nothing", filled("SELECT 1", " end")],
    ["statements", filled("SELECT 1", ";SELECT 1")],
    ["characters of four bytes before a mistake", filled("SELECT '", "🎄", "' 1 2")],
  ])("%s", async (_, query) => {
    expect(await judge(query)).toBeLessThan(FACTOR * harmlessMs);
  });
});

describe("the log is cleaned of the worst text in about the time of a harmless one", () => {
  const FACTOR = 100;
  const clean = (text: string) => processorMs(() => redact(text));
  let harmlessMs: number;
  beforeAll(async () => {
    harmlessMs = await clean(HARMLESS);
  });
  const HARMLESS = filled("", "a few words at http://example.org/ that hide nothing, ");

  it.each([
    ["beginnings of URLs", filled("", "a://")],
    ["beginnings of tokens", filled("", "eyJ-")],
    ["tokens of two parts", filled("", "eyJa.b")],
    ["one long word", filled("", "a")],
    ["passwords without a value", filled("", "password ")],
    ["a password far from its value", filled("password", " ")],
    ["logins", filled("", "basic ")],
    ["keys", filled("", "vitrina_")],
  ])("%s", async (_, text) => {
    expect(await clean(text)).toBeLessThan(FACTOR * harmlessMs);
  });
});
