import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditQuery, checkQuery } from "../../src/sql-guard/guard.ts";
import { runs } from "../support/seed.ts";
import { type GuardedDatabase, openGuardedDatabase, RULES } from "./fixture.ts";
import { STRUCTURES } from "./structures.ts";

describe("a query that would be planned without end", () => {
  it.each(STRUCTURES)("is refused with its place and the limit: %s", async (_, make, refusedAt) => {
    await expect(checkQuery(make(refusedAt), RULES)).rejects.toMatchObject({
      code: "QUERY_REFUSED",
      problems: [
        {
          message: expect.stringMatching(
            /^Line 1, column \d+: here the query comes to .+, and at most \d+ are allowed\.$/,
          ),
          line: 1,
        },
      ],
    });
  });

  it.each(STRUCTURES)("is accepted at a size that people write: %s", async (_, make, _refusedAt, acceptedAt) => {
    await checkQuery(make(acceptedAt), RULES);
  });

  it("is told from one whose names only look alike", async () => {
    const one = "SELECT a FROM (WITH c AS (SELECT 1 AS a) SELECT a FROM c) q";
    await checkQuery(Array.from({ length: 100 }, () => one).join(" UNION ALL "), RULES);
  });
});

describe("on a server", () => {
  let guarded: GuardedDatabase;
  beforeAll(async () => {
    guarded = await openGuardedDatabase();
  });
  afterAll(() => guarded.close());

  it("R8.2 whatever structure the guard lets pass is planned, or given up when its time is over", async () => {
    const structure = fc
      .tuple(fc.constantFrom(...STRUCTURES), fc.double({ min: 0, max: 1, noNaN: true }))
      .map(([[, make, refusedAt, acceptedAt], place]) =>
        make(Math.ceil(acceptedAt + (refusedAt - acceptedAt) * place ** 3)),
      );
    let planned = 0;
    const property = fc.asyncProperty(structure, async (query) => {
      const isAccepted = await checkQuery(query, RULES).then(
        () => true,
        () => false,
      );
      if (!isAccepted) return;
      await auditQuery(guarded.reader, query, RULES);
      await guarded.reader.query("SET statement_timeout = '10s'");
      // A server that does not look at its clock would keep this test until its own time is over.
      await guarded.reader.query(`EXPLAIN ${query}`).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "57014" });
      });
      planned += 1;
    });
    await fc.assert(property, { numRuns: runs(4, 40) });
    await guarded.reader.query("RESET statement_timeout");
    expect(planned).toBeGreaterThan(0);
  }, 600_000);
});
