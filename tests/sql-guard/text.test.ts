import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { checkQuery } from "../../src/sql-guard/guard.ts";
import { runs } from "../support/seed.ts";
import { BENIGN } from "./benign.ts";
import { RULES } from "./fixture.ts";
import { REFUSED_BY_TEXT } from "./hostile.ts";

const messagesOf = (query: string): Promise<readonly string[]> =>
  checkQuery(query, RULES).then(
    () => [],
    (error: VitrinaError) => error.problems.map(({ message }) => message),
  );

describe("a refusal", () => {
  it("names every mistake at once, each with its line and column", async () => {
    const query = "SELECT u.login,\n  pg_sleep(1),\n\t'é🎄', x::regclass\nFROM auth.users u, film_work";
    expect(await messagesOf(query)).toEqual([
      "Line 2, column 3: the function pg_sleep reaches beyond the query, into the server or other sessions.",
      "Line 3, column 11: the type regclass belongs to PostgreSQL's internals.",
      "Line 4, column 6: the table auth.users is outside the allowed schemas (content, ugc).",
      "Line 4, column 20: the table film_work has no schema; write every table with its schema, one of content, ugc.",
    ]);
  });

  it("counts columns in characters, also where PostgreSQL itself finds the mistake", async () => {
    expect(await messagesOf("SELECT 'é🎄'\r\nFROM 'ё' WHERE")).toEqual([
      `Line 2, column 6: PostgreSQL cannot read the query: syntax error at or near "'ё'".`,
    ]);
  });

  it("says a mistake that is made a thousand times in a few sentences", async () => {
    const query = `SELECT ${Array.from({ length: 1000 }, () => "pg_sleep(1)").join(",")}`;
    await expect(checkQuery(query, RULES)).rejects.toMatchObject({
      message: /And 15 more\.$/,
      problems: { length: 20 },
    });
  });

  it("quotes names that are no plain words, and shortens what nobody would read", async () => {
    const [message] = await messagesOf(`SELECT 1 FROM "a b"."${"a\n".repeat(300)}"`);
    expect(message).toMatch(/^Line 1, column 15: the table "a b"\."a\\na\\n.*… is outside/);
    expect(message?.length).toBeLessThan(200);
  });

  it("takes the allowed schemas from its rules", async () => {
    await checkQuery("SELECT 1 AS n FROM staging.orders", { allowedSchemas: ["staging"] });
    await expect(checkQuery("SELECT 1 AS n FROM content.film_work", { allowedSchemas: ["staging"] })).rejects.toThrow(
      /outside the allowed schemas \(staging\)/,
    );
  });
});

describe("a query that is nested without end", () => {
  const nested: [string, (n: number) => string][] = [
    ["brackets", (n) => `SELECT ${"(".repeat(n)}1${")".repeat(n)}`],
    ["subqueries", (n) => `SELECT ${"(SELECT ".repeat(n)}1${")".repeat(n)}`],
    [
      "subqueries with names that look like an end",
      (n) => `${"SELECT x end FROM (".repeat(n)}SELECT 1 x${") q".repeat(n)}`,
    ],
    [
      "columns that look like an end",
      (n) => `SELECT ${"(t.end + ".repeat(n)}1${")".repeat(n)} FROM content.film_work t`,
    ],
    ["signs", (n) => `SELECT ${"- ".repeat(n)}1`],
    ["negations", (n) => `SELECT ${"NOT ".repeat(n)}true`],
    ["sums", (n) => `SELECT 1${"+1".repeat(n)}`],
    ["sums after comments that end in other line ends", (n) => `SELECT 1${" --\r+1".repeat(n)}`],
    ["casts", (n) => `SELECT 1${"::int".repeat(n)}`],
    ["cases", (n) => `SELECT ${"CASE WHEN ".repeat(n)}true${" THEN true END".repeat(n)}`],
    ["unions", (n) => `SELECT 1${" UNION SELECT 1".repeat(n)}`],
    ["joins", (n) => `SELECT 1 FROM content.a${" JOIN content.a ON true".repeat(n)}`],
    ["arrays", (n) => `SELECT ARRAY${"[".repeat(n)}1${"]".repeat(n)}`],
    ["calls", (n) => `SELECT ${"abs(".repeat(n)}1${")".repeat(n)}`],
    ["objects", (n) => `SELECT ${"JSON_OBJECT('a': ".repeat(n)}1${")".repeat(n)}`],
    ["common table expressions", (n) => `${"WITH a AS (".repeat(n)}SELECT 1${") SELECT 1".repeat(n)}`],
  ];

  it.each(nested)("is refused before the parser could overflow: %s", async (_, make) => {
    for (const n of [400, 5000, 15_000]) {
      const query = make(n);
      expect(await messagesOf(query)).toEqual([expect.stringMatching(/nests more than 300 levels|at most 256 KiB/)]);
    }
  });

  it.each(nested)("is read as long as it is within the limit: %s", async (_, make) => {
    for (const n of [1, 20, 80]) expect(await messagesOf(make(n))).toEqual([]);
    // Wherever the limit is exactly, whatever is not over it does not overflow the parser either.
    for (let n = 90; n <= 300; n += 10) {
      const [message = "accepted"] = await messagesOf(make(n));
      expect(message).toMatch(/accepted|nests more than 300 levels|here the query comes to/);
    }
  });
});

describe("the guard endures", () => {
  const isVerdict = async (query: string): Promise<void> => {
    await checkQuery(query, RULES).catch((error: unknown) => {
      expect(error).toBeInstanceOf(VitrinaError);
      expect(error).toMatchObject({ code: "QUERY_REFUSED" });
    });
  };

  it("any text at all", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
      fc.string({ maxLength: 5000 }),
    );
    await fc.assert(fc.asyncProperty(text, isVerdict), { numRuns: runs(200, 2000) });
  });

  it("any heap of words and signs", async () => {
    const words =
      "SELECT FROM WHERE ( ) [ ] , ; . :: ' \" $$ -- /* */ \\ \n \r \0 CASE WHEN END UNION WITH AS JOIN ON a 1 = + NOT é 🎄 \ud800";
    const heap = fc.array(fc.constantFrom(...words.split(" ")), { maxLength: 200 }).map((list) => list.join(" "));
    await fc.assert(fc.asyncProperty(heap, isVerdict), { numRuns: runs(200, 2000) });
  });

  it("thousands of queries, in memory that does not grow", async () => {
    const queries = [...BENIGN, ...REFUSED_BY_TEXT].map(({ sql }) => sql).filter((sql) => sql.length < 10_000);
    const round = async (): Promise<number> => {
      for (const query of queries) await checkQuery(query, RULES).catch(() => undefined);
      return process.memoryUsage().arrayBuffers + process.memoryUsage().external;
    };
    for (let warming = 0; warming < 3; warming += 1) await round();
    const before = await round();
    for (let n = 0; n < 12; n += 1) await round();
    expect((await round()) - before).toBeLessThan(8 * 1024 * 1024);
  });
});
