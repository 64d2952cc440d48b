import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type { PipelineId } from "../../src/domain/pipeline.ts";
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
  it("make exactly the schema of tests/schema.sql (UPDATE_SCHEMA=1 rewrites it)", async () => {
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

describe("a database of an earlier version", () => {
  const FILES = new URL("../../src/meta-store/migrations/", import.meta.url);

  /** As a program would have left it that knew only the migrations before this one. */
  async function migrateUpTo(version: number): Promise<void> {
    await database.query(`CREATE SCHEMA etl; CREATE TABLE etl.schema_migrations (
      version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`);
    for (const name of (await readdir(FILES)).sort()) {
      const number = Number(name.slice(0, 4));
      if (number >= version) continue;
      const sql = await readFile(new URL(name, FILES), "utf8");
      await database.query(sql);
      const checksum = createHash("sha256").update(sql).digest("hex");
      await database.query("INSERT INTO etl.schema_migrations VALUES ($1, $2, $3)", [number, name, checksum]);
    }
  }

  it("0024 keeps its reconciles as runs, and what was under way", async () => {
    await migrateUpTo(24);
    const id = (digit: string): PipelineId => `00000000-0000-4000-8000-00000000000${digit}` as PipelineId;
    const range = { key_min: null, key_max: null, incremental_key_min: null, incremental_key_max: null };
    const none = { count: 0, keys: [] };
    const report = (passes: number): string =>
      JSON.stringify({
        source: { rows_read: 9, rows: 9, rows_duplicate: 0, rows_refused: 0, ...range },
        target: { rows: 9, ...range },
        missing: none,
        extra: none,
        different: none,
        pending: none,
        compared_columns: ["id"],
        passes,
        notes: [],
      });
    await database.query(`
      INSERT INTO etl.etl_pipelines (id, name, target_table, status, status_before, lease_owner, lease_epoch, lease_expires_at, run_request)
      VALUES ('${id("1")}', 'running', 'analytics.a', 'RUNNING', 'IDLE', '${id("9")}', 5, now() - interval '1 s', 2),
             ('${id("2")}', 'resting', 'analytics.b', 'IDLE', NULL, NULL, 3, NULL, 1);
      INSERT INTO etl.etl_pipelines (id, name, target_table, status, restore_id)
      VALUES ('${id("3")}', 'restoring', 'es:c', 'RUN_REQUESTED', gen_random_uuid());
      INSERT INTO etl.etl_runs (pipeline_id, attempt, status, trigger, config_version, runner_id, lease_epoch, run_request,
                                started_at, finished_at, data_path)
      VALUES ('${id("1")}', 1, 'RUNNING', 'api', 1, '${id("9")}', 5, 2, now(), NULL, 'stream'),
             ('${id("1")}', 1, 'SUCCESS', 'api', 1, '${id("9")}', 4, 1, '2026-01-01Z', '2026-01-01Z', 'stream'),
             ('${id("2")}', 1, 'SUCCESS', 'api', 1, '${id("9")}', 3, 1, '2026-01-02Z', '2026-01-02Z', 'none');
      INSERT INTO etl.etl_reconciles (id, pipeline_id, status, requested_by, requested_at, started_at, finished_at,
                                      config_version, runner_id, rows_compared, report, error_code, error, lease_epoch, lease_expires_at, losses)
      VALUES ('${id("a")}', '${id("1")}', 'WAITING', 'ann', '2026-01-05Z', NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, 0),
             ('${id("b")}', '${id("2")}', 'RUNNING', 'bob', '2026-01-05Z', '2026-01-05Z', NULL, 1, '${id("9")}', 7, NULL, NULL, NULL, 2, now() - interval '1 s', 1),
             ('${id("c")}', '${id("2")}', 'DIFFERENT', 'bob', '2026-01-04Z', '2026-01-04Z', '2026-01-04Z', 1, '${id("9")}', 9, '${report(1)}', NULL, NULL, 1, NULL, 0),
             ('${id("d")}', '${id("2")}', 'INCONCLUSIVE', 'bob', '2026-01-03Z', '2026-01-03Z', '2026-01-03Z', 1, '${id("9")}', 0, NULL, 'DATABASE_BUSY', 'busy', 1, NULL, 0),
             ('${id("e")}', '${id("2")}', 'FAILED', 'bob', '2026-01-02Z', '2026-01-02Z', '2026-01-02Z', 1, '${id("9")}', 0, NULL, 'TARGET_MISSING', 'gone', 1, NULL, 0),
             ('${id("f")}', '${id("2")}', 'INCONCLUSIVE', 'bob', '2026-01-01Z', '2026-01-01Z', '2026-01-01Z', 1, '${id("9")}', 3, '${report(2)}', NULL, NULL, 1, NULL, 0)`);
    await prepareDatabase(database.settings, database.url);

    const store = database.openStore();
    expect((await store.reconciles.list(id("2"), { limit: 9 })).items).toMatchObject([
      { id: id("b"), status: "RUNNING", requested_by: "bob", rows_compared: 7, report: null },
      { id: id("c"), status: "DIFFERENT", report: { passes: 1 }, error: null },
      { id: id("d"), status: "INCONCLUSIVE", report: null, error_code: "DATABASE_BUSY", error: "busy" },
      { id: id("e"), status: "FAILED", report: null, error_code: "TARGET_MISSING" },
      { id: id("f"), status: "INCONCLUSIVE", report: { passes: 2 } },
    ]);
    expect((await store.runs.list(id("2"), { limit: 9 }, { lane: "write" })).items).toMatchObject([
      { kind: "restore", status: "SUCCESS", data_path: null },
    ]);
    // What its runner left behind is rescued as ever, and everything that waits is taken.
    const rescued = await store.queue.rescueExpired(id("8"));
    expect(new Map(rescued.map(({ name, kind, status }) => [name, { kind, status }]))).toEqual(
      new Map<string, unknown>([
        ["running", { kind: "load", status: "RUN_REQUESTED" }],
        ["resting", { kind: "reconcile", status: "IDLE" }],
      ]),
    );
    const claims = await Promise.all(
      (["write", "write", "read", "read"] as const).map((lane) => store.queue.claimNext(id("8"), 60_000, lane)),
    );
    expect(
      claims.map((claim) => `${claim?.pipeline.name} ${claim?.kind} ${claim?.attempt} ${claim?.epoch}`).sort(),
    ).toEqual(["resting reconcile 3 3", "restoring restore 1 1", "running load 1 6", "running reconcile 1 1"]);
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
