import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import { startRunner } from "../../src/main/runner.ts";
import { createLog } from "../../src/observability/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** A position says that everything before it was read: that holds for one history of one source. */

const READS_ALL = /everything is read again\.$/;

describe("a source table with another history", () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await openBench();
    await bench.startRunner();
  });
  afterAll(() => bench.close());

  let number = 0;
  const rows = (from: number, to: number, word: string): string =>
    `SELECT n, '${word} ' || n, now() FROM generate_series(${from}, ${to}) n`;

  async function films(cursor: object): Promise<Pipeline & { source: string }> {
    number += 1;
    const source = `content.film_${number}`;
    await bench.query(`CREATE TABLE ${source} (id bigint PRIMARY KEY, title text, modified timestamptz);
      INSERT INTO ${source} ${rows(1, 300, "film")}`);
    const config = { source_query: `SELECT id, title, modified FROM ${source}`, target_key: ["id"], batch_size: 100 };
    return { ...(await bench.create({ ...config, mode: "incremental", ...cursor })), source };
  }

  const BY_NUMBER = { incremental_key: "id" };
  const BY_STAMP = { incremental_key: "modified", incremental_id_key: "id" };

  const LIKE = "(id bigint PRIMARY KEY, title text, modified timestamptz)";
  const CHANGES: Record<string, (source: string) => string> = {
    "restored alone": (source) =>
      `DROP TABLE ${source}; CREATE TABLE ${source} ${LIKE}; INSERT INTO ${source} ${rows(1, 200, "film")};
       INSERT INTO ${source} ${rows(201, 400, "other")}`,
    "truncated and refilled": (source) => `TRUNCATE ${source}; INSERT INTO ${source} ${rows(1, 400, "other")}`,
    "given another type": (source) =>
      `ALTER TABLE ${source} ALTER title TYPE varchar(40) USING upper(title)::varchar(40)`,
  };

  it.each(Object.keys(CHANGES).flatMap((change) => [BY_NUMBER, BY_STAMP].map((cursor) => ({ change, ...cursor }))))(
    "$change is read as a whole by $incremental_key, and the run says why",
    async ({ change, ...cursor }) => {
      const pipeline = await films(cursor);
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 300, notes: [] });
      await bench.query(CHANGES[change]?.(pipeline.source) ?? "");
      const run = await bench.run(pipeline);
      expect(run.notes).toEqual([expect.stringMatching(READS_ALL)]);
      expect(run.status).toBe("SUCCESS");
      expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(`(${pipeline.source_query})`));
      // Once is enough.
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 0, notes: [] });
    },
  );

  /** A table in parts, and a view of it: the partitions hold the rows, and the query need not name them. */
  async function filmsInParts(relation: "table" | "view"): Promise<Pipeline & { source: string }> {
    number += 1;
    const source = `content.film_${number}`;
    await bench.query(`CREATE TABLE ${source} (id bigint PRIMARY KEY, title text, modified timestamptz) PARTITION BY RANGE (id);
      CREATE TABLE ${source}_a PARTITION OF ${source} FOR VALUES FROM (1) TO (1000);
      INSERT INTO ${source} ${rows(1, 300, "film")};
      CREATE VIEW ${source}_view AS SELECT modified, id, title FROM ${source};
      GRANT SELECT ON ${source}_view TO vitrina_reader`);
    const config = {
      source_query: `SELECT id, title, modified FROM ${source}${relation === "view" ? "_view" : ""}`,
      target_key: ["id"],
      batch_size: 100,
    };
    return { ...(await bench.create({ ...config, mode: "incremental", ...BY_STAMP })), source };
  }

  it.each([
    ["truncated", (source: string) => `TRUNCATE ${source}; INSERT INTO ${source} ${rows(1, 400, "other")}`],
    [
      "given a partition with older rows",
      (source: string) => `CREATE TABLE ${source}_b (LIKE ${source} INCLUDING ALL);
        INSERT INTO ${source}_b SELECT n, 'old ' || n, '2020-01-01' FROM generate_series(1001, 1100) n;
        ALTER TABLE ${source} ATTACH PARTITION ${source}_b FOR VALUES FROM (1000) TO (2000)`,
    ],
  ])("in parts, behind a view, is read as a whole when it was %s", async (_, change) => {
    const pipeline = await filmsInParts("view");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 300, notes: [] });
    await bench.query(change(pipeline.source));
    const run = await bench.run(pipeline);
    expect(run.notes).toEqual([expect.stringMatching(READS_ALL)]);
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(`(${pipeline.source_query})`));
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 0, notes: [] });
  });

  it("gets and loses partitions without being read again, as long as they bring only new rows", async () => {
    // Asked through the table itself, whose parts the reader need not be allowed to read.
    const pipeline = await filmsInParts("table");
    const { source } = pipeline;
    await bench.query(`REVOKE ALL ON ${source}_a FROM vitrina_reader`);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 300, notes: [] });
    await bench.query(`CREATE TABLE ${source}_b PARTITION OF ${source} FOR VALUES FROM (1000) TO (2000);
      REVOKE ALL ON ${source}_b FROM vitrina_reader`);
    await bench.query(`INSERT INTO ${source} ${rows(1001, 1100, "new")}`);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 100, notes: [] });
    await bench.query(`ALTER TABLE ${source} DETACH PARTITION ${source}_a`);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 0, notes: [] });
  });

  it("whose numbers are below the position is spoken of, since nobody can tell why", async () => {
    const pipeline = await films(BY_NUMBER);
    await bench.run(pipeline);
    await bench.query(
      `DELETE FROM ${pipeline.source} WHERE id > 200; INSERT INTO ${pipeline.source} ${rows(201, 210, "other")}`,
    );
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "SUCCESS", rows_read: 0 });
    expect(run.notes).toEqual([expect.stringContaining("no row at or after the position")]);
  });

  it("that a person takes for the same is not read again", async () => {
    const pipeline = await films(BY_STAMP);
    await bench.run(pipeline);
    await bench.query(`VACUUM FULL ${pipeline.source}`);
    await bench.store.state.keep(pipeline.id);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 0, notes: [] });
  });
});

it("another database at the same address is read as a whole: its rows need not lie behind the position", async () => {
  const bench = await openBench();
  const databases: TestDatabase[] = [];
  onTestFinished(async () => {
    await bench.close();
    for (const database of databases.reverse()) await database.drop();
  });
  const create = async (options = {}): Promise<TestDatabase> => {
    const database = await createTestDatabase(inject("postgresUrl"), options);
    databases.push(database);
    return database;
  };
  const before = await create();
  await before.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, 100) n;
    GRANT SELECT ON content.film TO vitrina_reader`);
  const restored = await create({ copyOf: before });
  await before.query("INSERT INTO content.film SELECT n, 'lost ' || n FROM generate_series(101, 150) n");
  await restored.query("INSERT INTO content.film SELECT n, 'new ' || n FROM generate_series(101, 120) n");
  const pipeline = await bench.create({
    source_query: "SELECT id, title FROM content.film",
    target_key: ["id"],
    mode: "incremental",
    incremental_key: "id",
  });
  const runFrom = async ({ urls: { reader } }: TestDatabase): Promise<Run> => {
    const runner = await startRunner(
      bench.database.settings,
      { ...bench.database.urls, reader },
      createLog({ level: "silent" }),
    );
    const run = await bench.run(pipeline);
    await runner.stop();
    return run;
  };
  expect(await runFrom(before)).toMatchObject({ status: "SUCCESS", rows_read: 150, notes: [] });
  const run = await runFrom(restored);
  expect(run).toMatchObject({ status: "SUCCESS", rows_read: 120 });
  expect(run.notes).toEqual([expect.stringMatching(READS_ALL)]);
  expect(await bench.query(`SELECT count(*)::int AS n FROM ${pipeline.target_table} WHERE title LIKE 'new %'`)).toEqual(
    [{ n: 20 }],
  );
});
