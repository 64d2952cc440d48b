import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { auditQuery, checkQuery } from "../../src/sql-guard/guard.ts";
import { BENIGN } from "./benign.ts";
import { type GuardedDatabase, openGuardedDatabase, RULES } from "./fixture.ts";
import { COSTLY, REFUSED_BY_AUDIT, REFUSED_BY_TEXT, SPIED, SPIED_QUERIES } from "./hostile.ts";

let guarded: GuardedDatabase;
let version: number;
let untouched: string;

beforeAll(async () => {
  guarded = await openGuardedDatabase();
  untouched = await guarded.fingerprint();
  const [server] = await guarded.database.query("SHOW server_version_num");
  version = Math.floor(Number(server?.["server_version_num"]) / 10_000);
});
afterAll(() => guarded.close());

/** As a run does it, but of a query that went past the guard. */
async function execute(sql: string, timeoutMs: number): Promise<{ rowCount: number | null }> {
  const { reader } = guarded;
  await reader.query("BEGIN READ ONLY");
  try {
    await reader.query(`SET LOCAL statement_timeout = ${timeoutMs}`);
    return await reader.query(`SELECT * FROM (\n${sql.trim().replace(/;[^;']*$/, "")}\n) AS q LIMIT 3`);
  } finally {
    await reader.query("ROLLBACK");
  }
}

describe("R8.2 the queries of analysts", () => {
  it.each(BENIGN)("are accepted by their text: $name", ({ sql }) =>
    expect(checkQuery(sql, RULES)).resolves.toBe(undefined),
  );

  it.each(BENIGN)("are accepted by the audit, and run: $name", async ({ sql, since = 0 }) => {
    if (version < since) {
      await expect(auditQuery(guarded.reader, sql, RULES)).rejects.toMatchObject({ code: "SOURCE_QUERY_FAILED" });
      return;
    }
    await auditQuery(guarded.reader, sql, RULES);
    await execute(sql, 20_000);
  });
});

describe("R8.2 hostile queries", () => {
  it.each(REFUSED_BY_TEXT)("are refused before a database is asked: $name", async ({ sql }) => {
    const refused = checkQuery(sql, RULES);
    await expect(refused).rejects.toMatchObject({ code: "QUERY_REFUSED", message: /^The query is refused\. .*\.$/s });
    const { problems } = (await refused.catch((error: unknown) => error)) as VitrinaError;
    expect(problems.length).toBeGreaterThan(0);
    for (const problem of problems) {
      expect(problem).toMatchObject({
        pointer: "",
        message: expect.stringMatching(/^(Line \d+, column \d+: |[A-Z]).+\.$/s),
      });
    }
  });

  it.each(REFUSED_BY_AUDIT)("are refused by what the source makes of them: $name", async ({ sql }) => {
    await checkQuery(sql, RULES);
    await expect(auditQuery(guarded.reader, sql, RULES)).rejects.toMatchObject({
      code: expect.stringMatching(/^(QUERY_REFUSED|SOURCE_QUERY_FAILED)$/),
    });
  });

  it("would do their harm without the audit", async () => {
    expect(await execute("SELECT * FROM content.leaky_deep", 5000)).toMatchObject({ rowCount: 3 });
    expect(await execute("SELECT secret FROM content.by_operator", 5000)).toMatchObject({
      rows: [{ secret: "s3cret" }],
    });
    expect(await execute("SELECT to_json(heat)::text AS secret FROM content.weather", 5000)).toMatchObject({
      rows: [{ secret: '"s3cret"' }, { secret: '"s3cret"' }],
    });
    for (const table of SPIED) {
      const read = execute(`SELECT id FROM content.${table} WHERE id < 9`, 5000);
      await expect(read, table).rejects.toThrow("ran as vitrina_reader");
    }
    for (const { name, sql } of SPIED_QUERIES) {
      await expect(execute(sql, 5000), name).rejects.toThrow("ran as vitrina_reader");
    }
    await expect(execute("SELECT r.pg_sleep FROM float8(9) AS r", 50)).rejects.toMatchObject({ code: "57014" });
  });
});

describe("R8.2 costly queries", () => {
  it.each(COSTLY)("are accepted, and stopped when their time is over: $name", async ({ sql }) => {
    await auditQuery(guarded.reader, sql, RULES);
    // 54000: larger than PostgreSQL lets any value be.
    await expect(execute(sql, 100)).rejects.toMatchObject({ code: expect.stringMatching(/^(57014|54000)$/) });
  });
});

it("the audit leaves nothing behind, in the database and in the session", async () => {
  expect(await guarded.fingerprint()).toBe(untouched);
  const { rows } = await guarded.reader.query(
    `SELECT current_setting('search_path') AS path, current_setting('statement_timeout') AS timeout,
            (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema())::text AS temporary`,
  );
  expect(rows).toEqual([{ path: "pg_catalog, pg_temp", timeout: "0", temporary: "0" }]);
});
