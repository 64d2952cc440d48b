import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { CINEMA, FILM_MART, reasonOf } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { type SlotServer, startSlotServer } from "../support/slot-server.ts";
import { until } from "../support/until.ts";

/** Marts in one server that follow another one by a slot, with a runner and the API. */

const SLOT = "vitrina_follow";
const SCRIPT = "/api/v1/sources/shop/follow/script";

let server: SlotServer;
let shop: TestDatabase;
let bench: Bench;
let api: { readonly url: string };
let films: Pipeline;
beforeAll(async () => {
  server = await startSlotServer();
  shop = await createTestDatabase(server.url);
  await shop.query(`CREATE SCHEMA content; ${CINEMA}; ALTER TABLE content.film ADD parent bigint;
    GRANT USAGE ON SCHEMA content TO vitrina_reader; GRANT SELECT ON ALL TABLES IN SCHEMA content TO vitrina_reader`);
  bench = await openBench({ SOURCE_SHOP_URL: shop.urls.reader, SOURCE_SHOP_CHANGES: `slot:${SLOT}` });
  api = await bench.startApi();
  films = await bench.create({ ...FILM_MART, source_connection: "shop" });
});
afterAll(async () => {
  await bench?.close();
  await shop?.query(await script("?remove=true").catch(() => "SELECT 1")).catch(() => undefined);
  await shop?.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
  await shop?.drop();
  await server?.stop();
});

const script = async (query = ""): Promise<string> => {
  const response = await fetch(`${api.url}${SCRIPT}${query}`);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return text;
};
const get = async (path: string, method = "GET") =>
  (await fetch(`${api.url}/api/v1${path}`, { method })).json() as Promise<Record<string, unknown>>;

const published = async () =>
  (await shop.query(`SELECT tablename AS name FROM pg_publication_tables WHERE pubname = '${SLOT}' ORDER BY 1`)).map(
    ({ name }) => name,
  );
const remove = async ({ id }: Pipeline): Promise<void> => {
  const { status } = await fetch(`${api.url}/api/v1/pipelines/${id}`, { method: "DELETE" });
  expect(status).toBe(204);
};

/** The rows of the mart and of its query, which are in different servers. */
async function isEqual({ target_table, source_query }: Pipeline): Promise<boolean> {
  const rows = async (database: Pick<TestDatabase, "query">, relation: string) =>
    JSON.stringify(await database.query(`SELECT q::text AS row FROM ${relation} AS q ORDER BY 1`));
  return (await rows(bench, target_table)) === (await rows(shop, `(${source_query})`));
}
const untilEqual = (pipeline: Pipeline) =>
  until("the mart is equal to its query", async () => (await isEqual(pipeline)) || undefined);
const untilStatus = ({ id }: Pipeline, status: string) =>
  until(`it is ${status}`, async () => (await bench.store.pipelines.get(id)).status === status);
const lastRun = async ({ id }: Pipeline) => (await bench.store.runs.list(id, { limit: 1 }, {})).items[0];

/** By a change alone: nothing is compared as a whole. */
async function followsOn(pipeline: Pipeline, change: string): Promise<void> {
  const { lastCompareAt } = await bench.store.follow.get(pipeline.id);
  await shop.query(change);
  expect(await isEqual(pipeline)).toBe(false);
  await untilEqual(pipeline);
  await untilStatus(pipeline, "IDLE");
  expect((await bench.store.follow.get(pipeline.id)).lastCompareAt).toEqual(lastCompareAt);
}

describe("a source with a slot", () => {
  it("says what it lacks, and gives the script that puts it right, which can be run again", async () => {
    const plan = await get(`/pipelines/${films.id}/follow/plan`);
    expect(plan["tables"]).toMatchObject([
      { recording: "missing" },
      { recording: "missing" },
      { recording: "missing" },
    ]);
    const lacking = await script("?diff=true");
    expect(lacking).toMatch(/^-- The role vitrina_reader may not read a slot: it lacks REPLICATION\./);
    const whole = await script();
    expect(whole).toContain("A role with REPLICATION can read every change of every table");
    await shop.query(whole);
    await shop.query(whole);
    expect(await script("?diff=true")).toBe("-- The source records everything that its pipelines need.\n");
    expect(await published()).toEqual(["film", "film_genre", "genre"]);
    const { warnings } = (await get(`/pipelines/${films.id}/follow/plan`)) as { warnings: string[] };
    const message = expect.stringContaining("max_slot_wal_keep_size of the source is -1");
    expect(warnings).toEqual([message]);
    // It is no fault of the query, and no compare changes it.
    const found = (await get(`/pipelines/${films.id}/validate`, "POST")) as { problems: Record<string, unknown>[] };
    const hint = expect.stringMatching(/^Tell the owner of the source/);
    expect(found.problems.filter(({ code }) => code === "FOLLOW_SIDE_EFFECT")).toMatchObject([
      { code: "FOLLOW_SIDE_EFFECT", severity: "warning", message, hint },
    ]);
  });

  it("is followed by itself, whatever changes, and does not keep what was seen", async () => {
    await bench.startRunner();
    const first = await bench.ended(films);
    expect(first).toMatchObject({ status: "SUCCESS" });
    expect(reasonOf(first)).toBe("Everything was compared. It is the first run.");
    for (const change of [
      "UPDATE content.film SET title = 'other' WHERE id = 3",
      "INSERT INTO content.film VALUES (201, 'new')",
      "DELETE FROM content.film WHERE id = 4",
      "UPDATE content.genre SET name = 'drama' WHERE id = 1",
      "UPDATE content.film_genre SET film_id = 201 WHERE film_id = 5",
      "UPDATE content.film SET id = 300 WHERE id = 6",
    ]) {
      await shop.query(change);
      await untilEqual(films);
    }
    const [run] = (await bench.store.runs.list(films.id, { limit: 1 }, {})).items;
    expect(run).toMatchObject({ strategy: "follow", error: null });
    const state = await bench.store.follow.get(films.id);
    expect(state).toMatchObject({
      compareReason: "It is the first run.",
      position: { lsn: expect.stringMatching(/^\w+\/\w+$/) },
    });
    await until("the slot has been moved", async () => {
      const [slot] = await shop.query(`SELECT confirmed_flush_lsn >= $1::pg_lsn AS moved FROM pg_replication_slots`, [
        state.position?.lsn,
      ]);
      return slot?.["moved"] === true;
    });
    expect(await get(`/pipelines/${films.id}/follow`)).toMatchObject({
      following: true,
      changes_waiting: 0,
      lag_seconds: 0,
      slot: { name: SLOT, kept_bytes: expect.any(Number) },
    });
  });

  it("no longer tells of a table that no pipeline follows any more, and the others follow on", async () => {
    await shop.query(`CREATE TABLE content.tag (id bigint PRIMARY KEY, film_id bigint, name text);
      GRANT SELECT ON content.tag TO vitrina_reader`);
    const tags = await bench.create({
      source_query: "SELECT film_id, string_agg(name, ' ' ORDER BY id) AS tags FROM content.tag GROUP BY film_id",
      target_key: ["film_id"],
      mode: "follow",
      source_connection: "shop",
      enabled: false,
    });
    await shop.query(await script());
    expect(await published()).toEqual(["film", "film_genre", "genre", "tag"]);
    const before = await bench.store.follow.get(films.id);
    await remove(tags);
    const lacking = await script("?diff=true");
    expect(lacking).toContain(
      "-- No pipeline follows content.tag any more: this script takes it out of the publication.",
    );
    expect(lacking).toContain("ALTER TABLE content.tag REPLICA IDENTITY DEFAULT sets it back");
    await shop.query(lacking);
    await shop.query(lacking);
    expect(await published()).toEqual(["film", "film_genre", "genre"]);
    expect(await script("?diff=true")).toBe("-- The source records everything that its pipelines need.\n");
    await shop.query("UPDATE content.film SET title = 'followed on' WHERE id = 8");
    await untilEqual(films);
    const { lastCompareAt } = await bench.store.follow.get(films.id);
    expect(lastCompareAt).toEqual(before.lastCompareAt);
  });

  it("keeps in the publication what a pipeline may need that is left out of the script", async () => {
    await shop.query("CREATE TABLE content.passing (id bigint); GRANT SELECT ON content.passing TO vitrina_reader");
    const tags = await bench.create({
      source_query: "SELECT t.id, t.name FROM content.tag t LEFT JOIN content.passing p ON p.id = t.id",
      target_key: ["id"],
      mode: "follow",
      source_connection: "shop",
      enabled: false,
    });
    await shop.query(await script());
    await shop.query("DROP TABLE content.passing");
    for (const query of ["", "?diff=true"]) {
      const partial = await script(query);
      expect(partial).toMatch(/^-- Without p_/);
      await shop.query(partial);
      expect(await published()).toEqual(["film", "film_genre", "genre", "tag"]);
    }
    expect(await script("?diff=true")).toContain("-- Nothing is taken away while a pipeline is left out");
    await remove(tags);
    await shop.query(await script("?diff=true"));
    expect(await published()).toEqual(["film", "film_genre", "genre"]);
  });

  it("that was recreated makes the mart compare everything, and say why", async () => {
    // So that nobody looks while there is no slot, as below.
    await bench.stopRunner();
    await shop.query(`SELECT pg_drop_replication_slot('${SLOT}')`);
    await shop.query("UPDATE content.film SET title = 'in between' WHERE id = 7");
    await shop.query(await script());
    await bench.startRunner();
    await untilEqual(films);
    const { compareReason } = await bench.store.follow.get(films.id);
    expect(compareReason).toContain(`The slot ${SLOT} is past changes that were not read yet`);
  });

  it("that is dropped stops the mart, which goes on by itself once the owner has run the script again", async () => {
    await until("the slot is dropped", () =>
      // A round may be reading it.
      shop.query(`SELECT pg_drop_replication_slot('${SLOT}')`).then(
        () => true as const,
        () => undefined,
      ),
    );
    expect(await shop.query("SELECT FROM pg_replication_slots")).toEqual([]);
    await shop.query("UPDATE content.film SET title = 'without a slot' WHERE id = 9");
    await untilStatus(films, "FAILED");
    const refused = await lastRun(films);
    expect(refused).toMatchObject({ error_code: "CHANGES_NOT_RECORDED" });
    expect(refused?.error).toContain(`There is no replication slot ${SLOT}.`);
    // So much later, and asked again and again: as long as there is no slot, no run begins.
    await bench.query(`UPDATE etl.etl_runs SET started_at = started_at - interval '1 hour',
                                               finished_at = finished_at - interval '1 hour'`);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(await lastRun(films)).toMatchObject({ id: refused?.id });
    expect(await isEqual(films)).toBe(false);

    await shop.query(await script());
    await untilEqual(films);
    await untilStatus(films, "IDLE");
    const run = await lastRun(films);
    expect(run).toMatchObject({ status: "SUCCESS", trigger: "change" });
    expect(run && reasonOf(run)).toContain(`The slot ${SLOT} is past changes that were not read yet`);
    await followsOn(films, "UPDATE content.film SET title = 'with another slot' WHERE id = 10");
  });

  describe("compares everything, because no row tells of it,", () => {
    it("after ALTER COLUMN TYPE … USING", async () => {
      const storage = async () => shop.query("SELECT pg_relation_filenode('content.genre') AS file");
      const before = await storage();
      await shop.query("ALTER TABLE content.genre ALTER name TYPE varchar(40) USING upper(name)");
      expect(await storage()).not.toEqual(before);
      await untilEqual(films);
      await untilStatus(films, "IDLE");
      expect((await bench.store.follow.get(films.id)).compareReason).toMatch(/content\.genre/);
      const [mart] = await bench.query(`SELECT genres FROM ${films.target_table} WHERE film_id = 10`);
      expect(mart).toEqual({ genres: "DRAMA" });
      await followsOn(films, "UPDATE content.genre SET name = 'horror' WHERE id = 2");
    });

    it("after DETACH and ATTACH PARTITION", async () => {
      await shop.query(`CREATE TABLE content.sale (id bigint, place text, PRIMARY KEY (id, place)) PARTITION BY LIST (place);
        CREATE TABLE content.sale_north PARTITION OF content.sale FOR VALUES IN ('north');
        CREATE TABLE content.sale_south PARTITION OF content.sale FOR VALUES IN ('south');
        CREATE TABLE content.sale_west (id bigint NOT NULL, place text NOT NULL, PRIMARY KEY (id, place));
        INSERT INTO content.sale SELECT n, CASE n % 2 WHEN 0 THEN 'north' ELSE 'south' END FROM generate_series(1, 20) n;
        INSERT INTO content.sale_west SELECT n, 'west' FROM generate_series(21, 25) n;
        GRANT SELECT ON ALL TABLES IN SCHEMA content TO vitrina_reader`);
      const sales = await bench.create({
        source_query: "SELECT id, place FROM content.sale",
        target_key: ["id", "place"],
        mode: "follow",
        max_delete_percent: 100,
        source_connection: "shop",
        enabled: false,
      });
      await shop.query(await script());
      await bench.query("UPDATE etl.etl_pipelines SET enabled = true WHERE id = $1", [sales.id]);
      await until("it follows", async () => (await bench.store.follow.get(sales.id)).position !== null);
      await untilEqual(sales);
      for (const [statement, rows] of [
        ["ALTER TABLE content.sale DETACH PARTITION content.sale_north", 10],
        ["ALTER TABLE content.sale ATTACH PARTITION content.sale_west FOR VALUES IN ('west')", 15],
      ] as const) {
        await shop.query(statement);
        expect(await shop.query("SELECT FROM content.sale"), statement).toHaveLength(rows);
        await untilEqual(sales);
        await untilStatus(sales, "IDLE");
        const { compareReason } = await bench.store.follow.get(sales.id);
        expect(compareReason).toBe("A partition of content.sale was attached or removed.");
        await followsOn(sales, "UPDATE content.sale SET id = id + 100 WHERE id = (SELECT max(id) FROM content.sale)");
      }
      await remove(sales);
    });
  });

  it("takes away what the script has made, twice", async () => {
    await bench.stopRunner();
    await remove(films);
    const nobody = await script("?diff=true");
    expect(nobody).toContain(`-- No pipeline follows this source any more, so nobody moves the slot ${SLOT}`);
    await shop.query(nobody);
    expect(await published()).toEqual([]);
    await shop.query(await script("?remove=true"));
    await shop.query(await script("?remove=true"));
    expect(await shop.query("SELECT FROM pg_replication_slots")).toEqual([]);
    expect(await shop.query("SELECT FROM pg_publication")).toEqual([]);
  });
});
