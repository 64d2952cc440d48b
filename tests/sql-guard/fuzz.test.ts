import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { auditQuery, checkQuery } from "../../src/sql-guard/guard.ts";
import { runs } from "../support/seed.ts";
import { BENIGN } from "./benign.ts";
import { type GuardedDatabase, openGuardedDatabase, RULES } from "./fixture.ts";
import { REFUSED_BY_AUDIT, REFUSED_BY_TEXT } from "./hostile.ts";

/** How many queries are tried, to find one that gets past the guard and does harm. */
const QUERIES = runs(100, 2000);

const SECRET = "s3cret";

let guarded: GuardedDatabase;
beforeAll(async () => {
  guarded = await openGuardedDatabase();
});
afterAll(() => guarded.close());

const short = (queries: readonly { sql: string }[]): string[] =>
  queries.map(({ sql }) => sql.replace(/;[^;']*$/, "")).filter((sql) => sql.length < 1500 && sql.trim() !== "");
const benign = fc.constantFrom(...short(BENIGN));
const hostile = fc.constantFrom(...short([...REFUSED_BY_TEXT, ...REFUSED_BY_AUDIT]));
const anyQuery = fc.oneof(benign, hostile);

/** Words, names, signs and texts, with the spaces between them. */
const tokensOf = (sql: string): string[] => sql.match(/\s+|'(?:[^']|'')*'|"[^"]*"|\w+|[^\s\w]/g) ?? [];

const isName = (token: string): boolean => /^[a-z_"]/i.test(token);

/** A query with tokens of another one in it: swapped names, or a piece of it in place of a piece. */
const spliced = fc
  .tuple(benign, anyQuery, fc.nat(), fc.nat(), fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 12 }))
  .map(([into, from, at, start, drop, take]) => {
    const target = tokensOf(into);
    const donor = tokensOf(from);
    target.splice(at % target.length, drop, ...donor.slice(start % donor.length, (start % donor.length) + take));
    return target.join("");
  });

const renamed = fc.tuple(benign, anyQuery, fc.nat(), fc.nat()).map(([into, from, at, which]) => {
  const target = tokensOf(into);
  const names = tokensOf(from).filter(isName);
  const places = [...target.keys()].filter((index) => isName(target[index] as string));
  const place = places[at % Math.max(places.length, 1)];
  if (place !== undefined && names.length > 0) target[place] = names[which % names.length] as string;
  return target.join("");
});

const wrapped = fc.tuple(fc.oneof(benign, hostile, spliced), benign, fc.nat({ max: 9 })).map(([inner, outer, how]) => {
  const shapes = [
    `SELECT * FROM (${inner}) AS w`,
    `WITH w AS (${inner}) SELECT * FROM w`,
    `WITH w AS (${inner}) ${outer}`,
    `SELECT EXISTS (${inner}) AS e`,
    `SELECT ARRAY(${inner}) AS a`,
    `(${outer}) UNION ALL (${inner})`,
    `SELECT (w).* FROM (${inner}) AS w`,
    `SELECT row_to_json(w) FROM (${inner}) AS w`,
    `SELECT 1 AS n FROM content.film_work ORDER BY (SELECT count(*) FROM (${inner}) AS w)`,
    `SELECT count(*) FILTER (WHERE EXISTS (${inner})) AS n FROM content.film_work`,
  ];
  return shapes[how] as string;
});

/** What the guard thinks of it; anything but a verdict is a defect. */
async function isAccepted(query: string): Promise<boolean> {
  try {
    await checkQuery(query, RULES);
    await auditQuery(guarded.reader, query, RULES);
    return true;
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    expect(error.code).toMatch(/^(QUERY_REFUSED|SOURCE_QUERY_FAILED)$/);
    return false;
  }
}

/** Runs it as a run would. A query may well fail, or take too long. */
async function resultOf(query: string): Promise<string> {
  const { reader } = guarded;
  await reader.query("BEGIN READ ONLY");
  try {
    await reader.query("SET LOCAL statement_timeout = 200");
    const { rows } = await reader.query(`SELECT * FROM (\n${query}\n) AS q LIMIT 20`);
    return JSON.stringify(rows);
  } catch {
    return "";
  } finally {
    await reader.query("ROLLBACK");
  }
}

it("R8.2 no query that the guard lets pass changes anything, or shows what is outside the allowed schemas", async () => {
  const untouched = await guarded.fingerprint();
  let accepted = 0;
  let refused = 0;
  const property = fc.asyncProperty(fc.oneof(spliced, renamed, wrapped), async (query) => {
    if (!(await isAccepted(query))) {
      refused += 1;
      return;
    }
    accepted += 1;
    expect(await resultOf(query)).not.toContain(SECRET);
  });
  await fc.assert(property, { numRuns: QUERIES });
  expect(await guarded.fingerprint()).toBe(untouched);
  // Otherwise nothing was tried.
  expect(accepted).toBeGreaterThan(0);
  expect(refused).toBeGreaterThan(0);
}, 1_800_000);
