import { readFile, writeFile } from "node:fs/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { prepareDatabase } from "../../src/main/database.ts";
import { migrate } from "../../src/meta-store/migrate.ts";
import { enableRoleLogins } from "../../src/meta-store/roles.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { dumpSchema } from "../support/schema-dump.ts";

const GOLDEN = new URL("../schema.sql", import.meta.url);

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase(inject("postgresUrl"), { empty: true });
});
afterEach(() => database.drop());

describe("migrations", () => {
  it("make exactly the schema of tests/schema.sql (UPDATE_SCHEMA=1 writes it anew)", async () => {
    await migrate(database.url);
    const dump = await dumpSchema(database);
    if (process.env["UPDATE_SCHEMA"] === "1") await writeFile(GOLDEN, dump);
    expect(dump).toBe(await readFile(GOLDEN, "utf8"));
  });

  it("are applied once, also by ten programs at the same time", async () => {
    const results = await Promise.all(Array.from({ length: 10 }, () => migrate(database.url)));
    const applied = results.flatMap(({ applied }) => applied);
    expect(applied).toEqual([...new Set(applied)]);
    expect(applied.length).toBeGreaterThan(0);
    expect(await migrate(database.url)).toEqual({ applied: [] });
  });

  it("refuse a database whose applied migration was changed", async () => {
    await migrate(database.url);
    await database.query("UPDATE etl.schema_migrations SET checksum = 'other' WHERE version = 2");
    await expect(migrate(database.url)).rejects.toMatchObject({ code: "MIGRATION_CHANGED" });
  });

  it("refuse a database of a newer program", async () => {
    await migrate(database.url);
    await database.query("INSERT INTO etl.schema_migrations VALUES (9999, '9999_later.sql', 'x')");
    await expect(migrate(database.url)).rejects.toMatchObject({ code: "SCHEMA_TOO_NEW" });
  });

  it("leave nothing of a migration that failed", async () => {
    await database.query("CREATE SCHEMA etl; CREATE TABLE etl.etl_pipeline_tasks (in_the_way int)");
    await expect(migrate(database.url)).rejects.toMatchObject({ code: "MIGRATION_FAILED" });
    expect(await database.query("SELECT to_regclass('etl.etl_pipelines') AS found")).toEqual([{ found: null }]);
    await database.query("DROP TABLE etl.etl_pipeline_tasks");
    expect((await migrate(database.url)).applied).not.toEqual([]);
  });

  it("a server without the roles, as a restored backup may find it, is named with what to do", async () => {
    const login = new URL(database.urls.reader);
    login.username = "vitrina_nobody";
    await expect(enableRoleLogins(database.url, [login.href])).rejects.toMatchObject({
      code: "ROLE_MISSING",
      message: "There is no role vitrina_nobody on this server.",
      hint: expect.stringContaining("docs/guides/back-up.md"),
    });
  });

  it("a second Vitrina on the server with another secret is refused: it would lock the first one out", async () => {
    await migrate(database.url);
    const { reader } = database.urls;
    const login = new URL(reader);
    login.password = "of-another-secret";
    await expect(enableRoleLogins(database.url, [login.href])).rejects.toMatchObject({
      code: "ROLE_IN_USE",
      hint: expect.stringContaining("VITRINA_ROLE_SECRET"),
    });
    await expect(enableRoleLogins(database.url, [reader])).resolves.toBeUndefined();
  });

  it("a store on a database without the schema says so", async () => {
    await prepareDatabase(database.settings, database.url);
    await database.query("DELETE FROM etl.schema_migrations WHERE version = 3");
    await expect(database.openStore().checkReady()).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
  });
});

describe("R8.3 the roles", () => {
  const attempt = async (url: string, sql: string): Promise<string> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(sql);
      return "allowed";
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      await client.end();
    }
  };
  const DENIED = "42501";
  const READ_ONLY = "25006";

  beforeEach(async () => {
    await database.query(`CREATE SCHEMA content; CREATE TABLE content.film (id int);
      CREATE SCHEMA secret; CREATE TABLE secret.passwords (id int)`);
    await prepareDatabase(database.settings, database.url);
    await database.query("CREATE TABLE content.later (id int); CREATE TABLE analytics.mart (id int PRIMARY KEY)");
  });

  it("the reader reads the sources, and nothing else", async () => {
    const { reader } = database.urls;
    expect(await attempt(reader, "SELECT * FROM content.film")).toBe("allowed");
    expect(await attempt(reader, "SELECT * FROM content.later")).toBe("allowed");
    expect(await attempt(reader, "SELECT * FROM secret.passwords")).toBe(DENIED);
    expect(await attempt(reader, "SELECT * FROM etl.etl_pipelines")).toBe(DENIED);
    expect(await attempt(reader, "SELECT * FROM analytics.mart")).toBe(DENIED);
    expect(await attempt(reader, "INSERT INTO content.film VALUES (1)")).toBe(READ_ONLY);
    const writable = "SET TRANSACTION READ WRITE;";
    expect(await attempt(reader, `${writable} INSERT INTO content.film VALUES (1)`)).toBe(DENIED);
    expect(await attempt(reader, "CREATE TABLE public.x (id int)")).toBe(READ_ONLY);
    expect(await attempt(reader, `${writable} CREATE TABLE public.x (id int)`)).toBe(DENIED);
  });

  it("the writer writes the marts, and cannot read sources or configuration", async () => {
    const { writer } = database.urls;
    expect(await attempt(writer, "INSERT INTO analytics.mart VALUES (1)")).toBe("allowed");
    expect(await attempt(writer, "CREATE TABLE analytics.other (id int)")).toBe("allowed");
    expect(await attempt(writer, "SELECT * FROM content.film")).toBe(DENIED);
    expect(await attempt(writer, "SELECT source_query FROM etl.etl_pipelines")).toBe(DENIED);
    expect(await attempt(writer, "UPDATE etl.etl_pipelines SET status = 'IDLE'")).toBe(DENIED);
    expect(await attempt(writer, "DELETE FROM etl.etl_runs")).toBe(DENIED);
    expect(await attempt(writer, "CREATE TABLE public.x (id int)")).toBe(DENIED);
  });

  it("the meta role keeps the meta-store, and cannot touch sources or marts", async () => {
    const { meta } = database.urls;
    expect(await attempt(meta, "SELECT * FROM etl.etl_pipelines")).toBe("allowed");
    expect(await attempt(meta, "SELECT * FROM content.film")).toBe(DENIED);
    expect(await attempt(meta, "SELECT * FROM analytics.mart")).toBe(DENIED);
    expect(await attempt(meta, "DELETE FROM etl.etl_pipeline_versions")).toBe(DENIED);
    expect(await attempt(meta, "DELETE FROM etl.schema_migrations")).toBe(DENIED);
  });

  it("none of them is a superuser or owns anything of the schema", async () => {
    expect(
      await database.query(`SELECT rolname FROM pg_roles WHERE rolname LIKE 'vitrina\\_%'
        AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)`),
    ).toEqual([]);
  });
});
