import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** A sequence with a CACHE gives each session numbers ahead, so that lower ones are committed after higher ones. */

const CACHE = 20;

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  await bench.startRunner();
});
afterAll(() => bench.close());

const follow = (relation: string, more: object = {}): Promise<Pipeline> =>
  bench.create({
    source_query: `SELECT id, title FROM ${relation}`,
    target_key: ["id"],
    mode: "incremental",
    incremental_key: "id",
    batch_size: 7,
    ...more,
  });

describe("a number that is given out ahead", () => {
  const sources: [string, string, string][] = [
    [
      "an identity",
      "content.a",
      `CREATE TABLE content.a (id bigint GENERATED ALWAYS AS IDENTITY (CACHE ${CACHE}) PRIMARY KEY, title text)`,
    ],
    [
      "a serial",
      "content.b",
      `CREATE TABLE content.b (id serial PRIMARY KEY, title text); ALTER SEQUENCE content.b_id_seq CACHE ${CACHE}`,
    ],
    [
      "a default",
      "content.c",
      `CREATE SEQUENCE content.numbers CACHE ${CACHE};
       CREATE TABLE content.c (title text, id bigint DEFAULT nextval('content.numbers') + 0 PRIMARY KEY)`,
    ],
    [
      "a view of views",
      "content.d",
      `CREATE TABLE content.d0 (title text, id bigint GENERATED ALWAYS AS IDENTITY (CACHE ${CACHE}) PRIMARY KEY);
       CREATE VIEW content.d1 AS SELECT 1 AS one, id AS number, title FROM content.d0;
       CREATE VIEW content.d AS SELECT title, number AS id FROM content.d1; GRANT SELECT ON content.d TO vitrina_reader`,
    ],
    [
      "a table that inherits",
      "content.e",
      `CREATE TABLE content.e (id bigint PRIMARY KEY, title text);
       CREATE TABLE content.e1 (id bigserial) INHERITS (content.e); ALTER SEQUENCE content.e1_id_seq CACHE ${CACHE}`,
    ],
  ];
  it.each(sources)("R5.2 is refused by the run: %s", async (_, relation, statements) => {
    await bench.query(statements);
    const pipeline = await follow(relation);
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "FAILED", error_code: "CURSOR_NUMBERS_AHEAD", rows_read: 0 });
    expect(run.error).toContain(`${CACHE} at a time`);
    await bench.store.pipelines.update(pipeline.id, { lookback_numbers: CACHE }, { author: "test" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  });

  it("is taken one at a time, or with a stamp as cursor", async () => {
    await bench.query(`CREATE TABLE content.f (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text);
      CREATE TABLE content.g (id bigint GENERATED ALWAYS AS IDENTITY (CACHE ${CACHE}) PRIMARY KEY, title text, modified timestamptz)`);
    expect(await bench.run(await follow("content.f"))).toMatchObject({ status: "SUCCESS" });
    const stamped = { source_query: "SELECT id, modified FROM content.g", incremental_key: "modified" };
    expect(await bench.run(await follow("content.g", stamped))).toMatchObject({ status: "SUCCESS" });
    const stray = await follow("content.g", { ...stamped, lookback_numbers: 5 });
    expect(await bench.run(stray)).toMatchObject({ status: "FAILED", error_code: "CURSOR_UNUSABLE" });
  });
});

it("R5.2 a look-back in numbers loses no row of sessions that keep numbers for later", async () => {
  await bench.query(
    `CREATE TABLE content.event (id bigint GENERATED ALWAYS AS IDENTITY (CACHE ${CACHE}) PRIMARY KEY, title text)`,
  );
  const sessions = await Promise.all(Array.from({ length: 4 }, () => connect()));
  // Each session is at most a few shares behind the others.
  const pipeline = await follow("content.event", { lookback_numbers: 20 * CACHE });
  let outOfOrder = 0;
  let greatest = 0;
  let state = 42;
  for (let step = 0; step < 12; step += 1) {
    for (let n = 0; n < 12; n += 1) {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      const session = sessions[(state >> 16) % sessions.length] as pg.Client;
      const { rows } = await session.query("INSERT INTO content.event (title) VALUES ('x') RETURNING id::int AS id");
      if (rows[0].id < greatest) outOfOrder += 1;
      greatest = Math.max(greatest, rows[0].id);
    }
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  }
  await Promise.all(sessions.map((session) => session.end()));
  expect(outOfOrder).toBeGreaterThan(50);
  expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.event"));
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: bench.database.url });
  await client.connect();
  return client;
}
