import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { CINEMA, FILM_MART, violations } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** What a run in follow mode leaves open for the next one, and when that is not used. */

const BY_HAND = { check_every_seconds: 3600 };

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  await bench.query(CINEMA);
  await bench.query(`CREATE VIEW content.shown AS SELECT id AS film_id, title FROM content.film;
    GRANT SELECT ON content.shown TO vitrina_reader`);
  await bench.startRunner();
});
afterAll(() => bench.close());

const SESSIONS = `SELECT pid, application_name FROM pg_stat_activity
  WHERE datname = current_database() AND application_name IN ('vitrina runner read', 'vitrina runner write') ORDER BY pid`;

async function changed(films: Pipeline, title: string): Promise<void> {
  await bench.query(`UPDATE content.film SET title = '${title}' WHERE id = 7`);
  expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", strategy: "follow", attempt: 1, rows_written: 1 });
  expect(await violations(bench, films)).toEqual([]);
}

it("goes on with the sessions of the run before, and with others where these were ended", async () => {
  const films = await bench.create({ ...FILM_MART, follow: BY_HAND });
  await bench.run(films);
  await changed(films, "first");
  const sessions = await bench.query(SESSIONS);
  await changed(films, "second");
  expect(await bench.query(SESSIONS)).toEqual(sessions);

  await bench.query(`SELECT pg_terminate_backend(pid) FROM (${SESSIONS}) AS s`);
  await changed(films, "third");
  expect(await bench.query(SESSIONS)).not.toEqual(sessions);
});

it("examines its query again when a view has been given another one", async () => {
  const shown = await bench.create({
    source_query: "SELECT film_id, title FROM content.shown",
    target_key: ["film_id"],
    mode: "follow",
    follow: BY_HAND,
  });
  await bench.run(shown);
  await changed(shown, "fourth");
  await bench.query(`CREATE OR REPLACE VIEW content.shown AS
    SELECT id AS film_id, title FROM content.film WHERE EXISTS (SELECT FROM etl.etl_pipelines)`);
  await bench.store.requests.run(shown.id, "api");
  expect(await bench.ended(shown)).toMatchObject({ status: "FAILED", error_code: "QUERY_REFUSED" });
});

it("gets another configuration, and the run before is not gone on with", async () => {
  const films = await bench.create({ ...FILM_MART, follow: BY_HAND });
  await bench.run(films);
  await changed(films, "fifth");
  const other = { ...films, source_query: films.source_query.replace("f.title", "upper(f.title) AS title") };
  await bench.store.pipelines.update(films.id, { source_query: other.source_query }, { author: "test" });
  expect(await bench.run(films)).toMatchObject({ status: "SUCCESS" });
  await changed(other, "sixth");
});
