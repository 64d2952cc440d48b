import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import { type Client, connectForData } from "../../src/postgres/connection.ts";
import { auditQuery } from "../../src/sql-guard/guard.ts";
import { startTestServer } from "../support/global-setup.ts";
import { BENIGN } from "./benign.ts";
import { extendedSession, type GuardedDatabase, loadFixture, openGuardedDatabase, RULES } from "./fixture.ts";
import { REFUSED_BY_AUDIT } from "./hostile.ts";

describe("the audit", () => {
  let guarded: GuardedDatabase;
  beforeAll(async () => {
    guarded = await openGuardedDatabase();
  });
  afterAll(() => guarded.close());

  const audit = (query: string): Promise<void> => auditQuery(guarded.reader, query, RULES);

  it("tells through which view a table is reached", async () => {
    await expect(audit("SELECT * FROM content.leaky_deep")).rejects.toMatchObject({
      code: "QUERY_REFUSED",
      problems: [
        {
          pointer: "",
          message:
            "The table auth.users (reached through content.leaky) is outside the allowed schemas (content, ugc).",
        },
      ],
    });
  });

  it("tells the place of what PostgreSQL does not understand", async () => {
    await expect(audit("-- ё\nSELECT 'ё' AS a,\n  nonsense FROM content.film_work;")).rejects.toMatchObject({
      code: "SOURCE_QUERY_FAILED",
      message: 'Could not run the source query, line 3, column 3: column "nonsense" does not exist (SQLSTATE 42703).',
    });
  });

  it("tells what to grant where the reader may not even look into an allowed schema", async () => {
    await guarded.database.query("CREATE SCHEMA closed; CREATE TABLE closed.film (id integer)");
    const rules = { allowedSchemas: ["content", "closed"] };
    await expect(auditQuery(guarded.reader, "SELECT id\nFROM closed.film", rules)).rejects.toMatchObject({
      code: "SOURCE_QUERY_FAILED",
      message:
        "Could not run the source query, line 2, column 6: permission denied for schema closed (SQLSTATE 42501).",
      hint: expect.stringMatching(/GRANT USAGE ON SCHEMA .* vitrina_reader, and npx vitrina migrate does it/),
    });
    await guarded.database.query("DROP SCHEMA closed CASCADE");
  });

  it("explains also what goes wrong in a statement of its own", async () => {
    await guarded.database.query("REVOKE SELECT ON pg_rewrite FROM PUBLIC");
    await expect(audit("SELECT id FROM content.film_work")).rejects.toMatchObject({
      code: "SOURCE_QUERY_FAILED",
      message: "Could not run the source query: permission denied for table pg_rewrite (SQLSTATE 42501).",
    });
    await guarded.database.query("GRANT SELECT ON pg_rewrite TO PUBLIC");
    await audit("SELECT id FROM content.film_work");
  });

  it("runs nothing of the query, not even its constant parts", async () => {
    await audit("SELECT 1 / 0 AS a, 'x'::text::integer AS b, lpad('x', 1000000000) AS c");
  });

  it("refuses by itself what only the text tells", async () => {
    await expect(audit("SELECT 1; COMMIT; DROP TABLE content.film_work")).rejects.toMatchObject({
      code: "QUERY_REFUSED",
    });
  });

  it("does not look at what a session was set to", async () => {
    await guarded.client.query("SET search_path = auth, content; SET standard_conforming_strings = off");
    try {
      await expect(audit("SELECT 1 ### 2 AS x")).rejects.toMatchObject({ code: "SOURCE_QUERY_FAILED" });
      await audit("SELECT '\\' AS a FROM content.film_work WHERE title <> ' , auth.users --'");
    } finally {
      await guarded.client.query("RESET search_path; RESET standard_conforming_strings");
    }
  });

  it("follows a partition out of the allowed schemas, and refuses tables of other servers", async () => {
    await guarded.database.query(
      "CREATE TABLE extra.event_2021 PARTITION OF content.event FOR VALUES FROM ('2021-01-01') TO ('2022-01-01')",
    );
    await expect(audit("SELECT id FROM content.event")).rejects.toThrow(
      /extra\.event_2021 \(reached through content\.event\)/,
    );
    await guarded.database.query(
      `DROP TABLE extra.event_2021; CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
       CREATE FOREIGN TABLE content.far PARTITION OF content.event FOR VALUES FROM ('2021-01-01') TO ('2022-01-01') SERVER nowhere`,
    );
    await expect(audit("SELECT id FROM content.event")).rejects.toThrow(/content\.far .*is neither a table nor a view/);
    await guarded.database.query("DROP FOREIGN TABLE content.far");
    await audit("SELECT id FROM content.event");
  });

  it("takes types and collations of a schema for allowed by its name, whether or not that needs quotes", async () => {
    await guarded.database.query(`CREATE SCHEMA "Odd.Shop"; GRANT USAGE ON SCHEMA "Odd.Shop" TO PUBLIC;
      CREATE TYPE "Odd.Shop"."Mood" AS ENUM ('sad', 'ok'); CREATE DOMAIN "Odd.Shop"."Score" AS integer;
      CREATE COLLATION "Odd.Shop"."Plain" FROM "C"`);
    const names = ["Mood", "Score", "Plain"].map((name) => `"Odd.Shop"."${name}"`);
    const [mood, score, plain] = names;
    const query = `SELECT 'sad'::${mood} AS m, 1::${score} AS s FROM content.film_work WHERE title < 'a' COLLATE ${plain}`;
    const withSchema = (schema: string) => ({ allowedSchemas: [...RULES.allowedSchemas, schema] });
    await auditQuery(guarded.reader, query, withSchema("Odd.Shop"));
    for (const other of ['"Odd.Shop"', "odd.shop", "Odd"]) {
      const refused = auditQuery(guarded.reader, query, withSchema(other));
      for (const name of names) await expect(refused).rejects.toThrow(`${name} is outside the allowed schemas`);
    }
    await guarded.database.query('DROP SCHEMA "Odd.Shop" CASCADE');
  });

  it("counts the tables behind views that are made of one another, and what is selected from them", async () => {
    const doubled = Array.from(
      { length: 14 },
      (_, i) =>
        `CREATE VIEW content.v${i + 1} AS SELECT a.id FROM content.${i === 0 ? "genre" : `v${i}`} a, content.${i === 0 ? "genre" : `v${i}`} b`,
    );
    await guarded.database.query(
      `${doubled.join(";")}; CREATE TABLE content.wide (${Array.from({ length: 1500 }, (_, i) => `c${i} integer`).join(",")})`,
    );
    await expect(audit("SELECT id FROM content.v14")).rejects.toThrow(
      "The query comes to 16384 tables once its views are put in their place, and at most 5000 are allowed.",
    );
    await audit("SELECT id FROM content.v8");
    const links = Array.from({ length: 80 }, (_, i) => `c${i + 1} AS (SELECT * FROM c${i})`).join(", ");
    await expect(
      audit(`WITH c0 AS (SELECT * FROM content.wide), ${links} SELECT c0.c1 FROM c80 AS c0`),
    ).rejects.toThrow(/comes to \d+ MiB once it is analysed, and at most 24 MiB are allowed: select fewer columns/);
    await guarded.database.query("DROP VIEW content.v1 CASCADE; DROP TABLE content.wide");
  });

  it("says what to grant where the reader may not make temporary views, and never goes without", async () => {
    const [{ name } = {}] = await guarded.database.query("SELECT current_database() AS name");
    await guarded.database.query(`REVOKE TEMPORARY ON DATABASE ${name} FROM PUBLIC, vitrina_reader`);
    await expect(audit("SELECT id FROM content.film_work")).rejects.toMatchObject({
      code: "SOURCE_NOT_AUDITABLE",
      hint: `Run GRANT TEMPORARY ON DATABASE ${name} TO vitrina_reader.`,
    });
    await guarded.database.query(`GRANT TEMPORARY ON DATABASE ${name} TO vitrina_reader`);
    await audit("SELECT id FROM content.film_work");
  });
});

describe("the audit on a standby, where no view can be made", () => {
  let dataDir: string;
  let server: EmbeddedPostgres;
  let client: Client;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "vitrina-standby-"));
    const primary = await startTestServer(dataDir);
    await loadFixture(primary.url);
    await primary.stop();
    await writeFile(join(dataDir, "postgres", "standby.signal"), "");
    server = await startTestServer(dataDir);
    client = await connectForData({ url: server.url, applicationName: "vitrina test" });
    const { rows } = await client.query("SELECT pg_is_in_recovery()::text AS standby");
    expect(rows).toEqual([{ standby: "true" }]);
    // Row security would spare a superuser.
    await client.query("SET ROLE vitrina_reader");
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const audit = (query: string): Promise<void> => auditQuery(extendedSession(client), query, RULES);

  it.each(BENIGN)("accepts the queries of analysts: $name", ({ sql }) => audit(sql));

  /** The server itself refuses to run them; without a view nobody learns of it before. */
  const foundOutLater = /not there|own operator without|row that is an own function/;
  const refused = REFUSED_BY_AUDIT.filter(({ name }) => !foundOutLater.test(name));
  it.each(refused)("refuses what reaches too far: $name", async ({ sql }) => {
    await expect(audit(sql)).rejects.toMatchObject({ code: "QUERY_REFUSED" });
  });
});
