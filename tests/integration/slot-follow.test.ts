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
const get = async (path: string) =>
  (await fetch(`${api.url}/api/v1${path}`)).json() as Promise<Record<string, unknown>>;

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
    expect(warnings).toEqual([expect.stringContaining("max_slot_wal_keep_size of the source is -1")]);
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
    // A run that finds no slot fails, and then waits for a person.
    await bench.stopRunner();
    await shop.query(`SELECT pg_drop_replication_slot('${SLOT}')`);
    await shop.query("UPDATE content.film SET title = 'in between' WHERE id = 7");
    await shop.query(await script());
    await bench.startRunner();
    await untilEqual(films);
    const { compareReason } = await bench.store.follow.get(films.id);
    expect(compareReason).toContain(`The slot ${SLOT} is past changes that were not read yet`);
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
