import { afterAll, beforeAll, expect, it } from "vitest";
import { openSourceInspector } from "../../src/connectors/postgres/source-inspector.ts";
import type { FollowedTable } from "../../src/sql-analysis/follow-plan.ts";
import { FILM, type FollowedSource, keyedTable, openFollowedSource } from "../support/followed-source.ts";
import { KEEP, type SlotServer, startSlotServer } from "../support/slot-server.ts";

/** A slot and generated columns: whatever the script does, the application goes on writing its tables. */

const NUMBER = "integer";

let server: SlotServer;
let source: FollowedSource;
/** Before PostgreSQL 18 there are no virtual columns, and none is ever published. */
let version: number;
beforeAll(async () => {
  server = await startSlotServer();
  source = await openFollowedSource({ kind: "slot", name: "generated", ...KEEP, serverUrl: server.url });
  const [row] = await source.query("SELECT current_setting('server_version_num')::int AS version");
  version = Number(row?.["version"]);
  await source.query("CREATE TABLE content.film (id bigint PRIMARY KEY, title text)");
  await source.install([FILM]);
});
afterAll(async () => {
  await source?.drop();
  await server?.stop();
});

/** A mart of how many rows there are by a column. */
const countBy = (table: string, column = "p") => {
  const key = { name: column, type: NUMBER };
  return {
    query: `SELECT ${column}, count(*) AS n FROM content.${table} GROUP BY ${column}`,
    key: [column],
    columns: [key, { name: "n", type: "bigint" }],
    tables: [keyedTable("content", table, key)],
  };
};
const create = (table: string, generated: string) =>
  source.query(`CREATE TABLE content.${table} (id integer PRIMARY KEY, p integer NOT NULL, v integer GENERATED ALWAYS AS ${generated});
    INSERT INTO content.${table} (id, p) VALUES (1, 1), (2, 1), (3, 1)`);
/** As an application does. */
const write = (table: string) =>
  source.query(`UPDATE content.${table} SET p = 2 WHERE id = 1; DELETE FROM content.${table} WHERE id = 2`);
const identityOf = async (table: string) =>
  (await source.query(`SELECT relreplident AS identity FROM pg_class WHERE oid = 'content.${table}'::regclass`))[0]?.[
    "identity"
  ];
const published = async () =>
  (await source.query("SELECT tablename AS name FROM pg_publication_tables WHERE pubname = 'generated'")).map(
    ({ name }) => name,
  );
const difference = async (tables: readonly FollowedTable[]): Promise<string> => {
  const inspector = openSourceInspector({ ...source.config, allowedSchemas: ["content"], timeoutMs: 60_000 });
  try {
    return await inspector.changesScript({ purpose: "diff", tables, isComplete: true });
  } finally {
    await inspector.close();
  }
};
/** As psql does: what fails is left out, and the rest goes on. */
async function installAsPsql(tables: readonly FollowedTable[]): Promise<string[]> {
  const inspector = openSourceInspector({ ...source.config, allowedSchemas: ["content"], timeoutMs: 60_000 });
  const script = await inspector.changesScript({ purpose: "install", tables, isComplete: true });
  await inspector.close();
  const owner = await source.connect();
  const refused: string[] = [];
  for (const block of script.split(/(?<=^COMMIT;\n)|(?=^BEGIN;\n)/m)) {
    await owner.query(block).catch(async ({ message }: Error) => {
      refused.push(message);
      await owner.query("ROLLBACK");
    });
  }
  return refused;
}

it("stored ones are published, so that FULL lets rows be written, also by a publication of an earlier release", async () => {
  await create("stored", "(id * 2) STORED");
  const mart = countBy("stored");
  await source.install(mart.tables);
  expect(await identityOf("stored")).toBe("f");
  const counts = await source.follow(mart);
  const start = await counts.start();
  await write("stored");
  expect(await counts.since(start)).toEqual({ kind: "keys", changes: 2, keys: [["1"], ["2"]] });
  if (version < 180_000) return;

  await source.query("ALTER PUBLICATION generated SET (publish_generated_columns = none)");
  await expect(write("stored")).rejects.toThrow(/cannot (update|delete from) table/);
  const refusal =
    'PostgreSQL refuses each UPDATE and DELETE of content.stored: its replica identity has the generated column v, which the publication leaves out. Run: ALTER PUBLICATION "generated" SET (publish_generated_columns = stored);';
  await expect(counts.start()).rejects.toMatchObject({ code: "CHANGES_NOT_RECORDED", message: refusal });
  const lacking = await difference(mart.tables);
  expect(lacking).toContain(`-- ${refusal}`);
  await source.query(lacking);
  await write("stored");
  expect(await difference(mart.tables)).toBe("-- The source records everything that its pipelines need.\n");
});

it("a stored one leads to a key since PostgreSQL 18", async () => {
  await create("by_stored", "(p % 5) STORED");
  const mart = countBy("by_stored", "v");
  await source.install(mart.tables);
  const counts = await source.follow(mart);
  if (version < 180_000) {
    await expect(counts.start()).rejects.toThrow(
      "content.by_stored.v is generated, which no slot tells before PostgreSQL 18: write in the query what it is made of",
    );
    return;
  }
  const start = await counts.start();
  await source.query("UPDATE content.by_stored SET p = 8 WHERE id = 1");
  expect(await counts.since(start)).toEqual({ kind: "keys", changes: 1, keys: [["1"], ["3"]] });
  await source.query("ALTER PUBLICATION generated SET (publish_generated_columns = none)");
  await expect(counts.start()).rejects.toThrow(
    "content.by_stored.v is generated, and the publication leaves generated columns out.",
  );
  await source.query(await difference(mart.tables));
  await counts.start();
});

it("nothing is set to FULL that another publication has without some columns", async () => {
  await create("shared", "(id * 2) STORED");
  const mart = countBy("shared");
  await source.query("CREATE PUBLICATION others FOR TABLE content.shared (id, p)");
  const [refused] = await installAsPsql(mart.tables);
  expect(refused).toBe(
    "With REPLICA IDENTITY FULL no row of content.shared could be updated or deleted: the publication others leaves columns of it out.",
  );
  expect(await identityOf("shared")).toBe("d");
  expect(await published()).not.toContain("shared");
  await write("shared");
  await source.query("ALTER PUBLICATION others SET TABLES IN SCHEMA content");
  if (version >= 180_000) {
    expect(await installAsPsql(mart.tables)).toContain(refused);
    await source.query("ALTER PUBLICATION others SET (publish_generated_columns = stored)");
  }
  expect(await installAsPsql(mart.tables)).toEqual([]);
  await source.query("UPDATE content.shared SET p = 3");
  await source.query("DROP PUBLICATION others");
});

it("a table with a virtual one has an index for its identity, or is not published", async (context) => {
  if (version < 180_000) return context.skip();
  await create("virtual", "(id * 2) VIRTUAL");
  const mart = countBy("virtual");
  const counts = await source.follow(mart);
  const remedy =
    'Run: CREATE UNIQUE INDEX … ON "content"."virtual" ("id", "p"); ALTER TABLE "content"."virtual" REPLICA IDENTITY USING INDEX …; The columns of the index have to be NOT NULL. Where one cannot be, store v, or follow the source by triggers.';
  const full =
    "each UPDATE and DELETE of content.virtual: no publication can have the virtual generated column v, which REPLICA IDENTITY FULL needs.";
  await expect(counts.start()).rejects.toThrow(`PostgreSQL would refuse ${full} ${remedy}`);
  // Also before there is a publication.
  await source.query("DROP PUBLICATION generated; SELECT pg_drop_replication_slot('generated')");
  expect(await difference(mart.tables)).toContain(`PostgreSQL would refuse ${full} ${remedy}`);
  const refused =
    "With REPLICA IDENTITY FULL no row of content.virtual could be updated or deleted: no publication can have its virtual generated column v.";
  expect(await installAsPsql(mart.tables)).toEqual([refused, refused]);
  expect(await identityOf("virtual")).toBe("d");
  expect(await source.query("SELECT slot_name FROM pg_replication_slots")).toEqual([]);
  await write("virtual");

  // As an earlier release has left it.
  await source.query(
    `ALTER TABLE content.virtual REPLICA IDENTITY FULL; CREATE PUBLICATION generated FOR TABLE content.virtual`,
  );
  await source.query("SELECT pg_create_logical_replication_slot('generated', 'pgoutput')");
  await expect(write("virtual")).rejects.toThrow(/cannot (update|delete from) table/);
  await expect(counts.start()).rejects.toThrow(`PostgreSQL refuses ${full} ${remedy}`);
  await source.query("CREATE UNIQUE INDEX virtual_identity ON content.virtual (id, p)");
  await expect(counts.start()).rejects.toThrow(
    `PostgreSQL refuses ${full} Run the script again: it takes a unique index instead.`,
  );
  await source.query(await difference(mart.tables));
  expect(await identityOf("virtual")).toBe("i");
  const start = await counts.start();
  await source.query("UPDATE content.virtual SET p = 7 WHERE id = 3");
  expect(await counts.since(start)).toEqual({
    kind: "keys",
    changes: 1,
    keys: [["1"], ["7"]],
  });
  // An identity that lacks a column is not to become FULL, either.
  await source.query("ALTER TABLE content.virtual REPLICA IDENTITY DEFAULT");
  await expect(counts.start()).rejects.toThrow(
    `The replica identity of content.virtual lacks p: when a row gets another p, the old one is unknown. ${remedy}`,
  );
});

it("a virtual one leads to no key", async (context) => {
  if (version < 180_000) return context.skip();
  await create("by_virtual", "(p % 5) VIRTUAL");
  const mart = countBy("by_virtual", "v");
  await source.query("ALTER PUBLICATION generated ADD TABLE content.by_virtual");
  await expect((await source.follow(mart)).start()).rejects.toThrow(
    "content.by_virtual.v is a virtual generated column, which no slot tells: store it.",
  );
});
