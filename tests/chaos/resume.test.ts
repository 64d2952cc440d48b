import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeQuery } from "../../src/connectors/postgres/describe-query.ts";
import { questionSession } from "../../src/connectors/postgres/read-session.ts";
import { diedAt, openChaos } from "../support/chaos.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** When an unfinished load may be continued, and when it must not. */

describe("a load that was refused as a whole", () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await openBench();
    await bench.startRunner();
  });
  afterEach(() => bench.close());

  const strategies: [string, string][] = [
    ["compare and apply", "int"],
    ["shadow and merge", "text"],
  ];
  it.each(strategies)("is read again once the source is fixed, by %s", async (strategy, type) => {
    await bench.query(
      `CREATE TABLE content.film AS SELECT n::${type} AS id, 'film' AS title FROM generate_series(1, 100) n`,
    );
    const pipeline = await bench.create({ source_query: "SELECT id, title FROM content.film", target_key: ["id"] });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 100 });

    await bench.query("CREATE TABLE kept AS TABLE content.film; DELETE FROM content.film WHERE id::int > 10");
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_DELETIONS", strategy });
    await bench.query("TRUNCATE content.film; INSERT INTO content.film SELECT id, 'right' FROM kept");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 100, rows_written: 100, strategy });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
  });
});

describe("a load that was interrupted", () => {
  it("goes on by bytes, though its text key takes upper and lower case for equal", async ({ onTestFinished }) => {
    const chaos = await openChaos("stream");
    onTestFinished(() => chaos.close());
    await chaos.query(`
      CREATE COLLATION content.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      CREATE TABLE content.word (word text COLLATE content.blind NOT NULL);
      INSERT INTO content.word SELECT unnest(ARRAY[upper(md5(n::text)), lower(md5(n::text))]) FROM generate_series(1, 20) n`);
    const pipeline = await chaos.create({
      name: "words",
      source_query: "SELECT word FROM content.word",
      target_table: "analytics.words",
      target_key: ["word"],
      create_target: true,
      batch_size: 1,
    });
    await chaos.store.requests.run(pipeline.id, "api");
    await diedAt(chaos, chaos.runner("batch_committed:1:kill"), "batch_committed");
    chaos.runner();
    await chaos.atRest();
    const missing = `SELECT word COLLATE "C" FROM content.word EXCEPT SELECT word COLLATE "C" FROM analytics.words`;
    expect(await chaos.query(missing)).toEqual([]);
    // The run that follows a load in parts would bring back what the load itself has passed over.
    const runs = await chaos.store.runs.list(pipeline.id, { limit: 5 });
    expect(runs.items.map(({ trigger, rows_read }) => [trigger, rows_read])).toEqual([
      ["follow_up", 40],
      ["recovery", 39],
      ["api", 1],
    ]);
  });
});

describe("a run that is cancelled while its runner is gone", () => {
  it("is over with the lease, is not run again by itself, and loses nothing when somebody asks", async ({
    onTestFinished,
  }) => {
    const chaos = await openChaos("stream");
    onTestFinished(() => chaos.close());
    await chaos.query("CREATE TABLE content.film AS SELECT n AS id FROM generate_series(1, 100) n");
    const pipeline = await chaos.create({
      name: "film",
      source_query: "SELECT id FROM content.film",
      target_table: "analytics.film",
      target_key: ["id"],
      create_target: true,
      mode: "incremental",
      incremental_key: "id",
      batch_size: 10,
    });
    const runs = async () =>
      (await chaos.store.runs.list(pipeline.id, { limit: 10 })).items.map(({ status }) => status).reverse();
    await chaos.store.requests.run(pipeline.id, "api");
    await diedAt(chaos, chaos.runner("batch_committed:3:kill"), "batch_committed");
    expect(await chaos.store.requests.cancel(pipeline.id)).toMatchObject({ status: "CANCEL_REQUESTED" });
    chaos.runner();
    await chaos.atRest();
    expect(await chaos.store.pipelines.get(pipeline.id)).toMatchObject({ status: "IDLE" });
    expect(await runs()).toEqual(["CANCELLED"]);

    await chaos.store.requests.run(pipeline.id, "api");
    await chaos.atRest();
    expect(await runs()).toEqual(["CANCELLED", "SUCCESS"]);
    expect(await chaos.query("SELECT count(*)::int AS rows FROM analytics.film")).toEqual([{ rows: 100 }]);
  });
});

describe("a query that closes its bracket", () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await openBench();
    await bench.startRunner();
  });
  afterEach(() => bench.close());

  const harm = "COMMIT; BEGIN READ WRITE; SELECT lo_create(4242); COMMIT; BEGIN";
  const query = `SELECT 1 AS id) AS q; ${harm}; SELECT * FROM (SELECT 1 AS id`;

  it("R8.2 gets no second statement executed", async () => {
    const pipeline = await bench.create({ source_query: query, target_key: ["id"] });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "QUERY_REFUSED" });
    expect(await bench.query("SELECT oid FROM pg_largeobject_metadata")).toEqual([]);
  });

  it("R8.2 gets no second statement executed even behind the guard", async () => {
    const session = questionSession({
      url: bench.database.urls.reader,
      applicationName: "vitrina test",
      readTimeoutMs: 10_000,
    });
    await expect(session.ask((client) => describeQuery(client, query))).rejects.toMatchObject({
      code: "SOURCE_QUERY_FAILED",
    });
    await expect(session.lend((lent) => lent.query(`SELECT * FROM (${query}) AS q`))).rejects.toMatchObject({
      code: "SOURCE_QUERY_FAILED",
    });
    await session.close();
    expect(await bench.query("SELECT oid FROM pg_largeobject_metadata")).toEqual([]);
  });
});
