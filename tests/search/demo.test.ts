import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { demoPipelines } from "../../src/main/demo.ts";
import { ownSource } from "../../src/main/own-source.ts";
import { startRunner } from "../../src/main/runner.ts";
import { createLog } from "../../src/observability/log.ts";
import { parseSettings } from "../../src/settings/settings.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type SearchView, searchView } from "../support/search-bench.ts";
import { until } from "../support/until.ts";

/** The smallest distribution of Elasticsearch has no languages; every other server has. */
const name = inject("searchServer");
const knowsLanguages = name === null || name === "opensearch3";
if (!knowsLanguages)
  console.warn(`Not tested: the demo's indexes, because this distribution of ${name} has no analysis of languages.`);

let database: TestDatabase;
let search: SearchView;
let stop: (() => Promise<void>) | undefined;
beforeAll(async () => {
  const settings = { ELASTICSEARCH_URL: inject("searchUrl"), TARGET_INDEXES: "film_*" };
  database = await createTestDatabase(inject("postgresUrl"), { cinema: true, settings });
  search = searchView(inject("searchUrl"));
  // As `npm start` does: the source is ours.
  const own = ownSource(database.settings, database.urls, database.url);
  stop = (await startRunner(database.settings, database.urls, createLog({ level: "silent" }), undefined, own)).stop;
});
afterAll(async () => {
  await stop?.();
  for (const index of ["film_dim", "film_rating_agg"]) await search?.drop(index);
  await database?.drop();
});

it.skipIf(!knowsLanguages)(
  "R1.4 the demo's indexes are built, a film is found by its misspelt Russian title, and a renamed genre arrives",
  async () => {
    const store = database.openStore();
    const pipelines = (await demoPipelines(database.settings, [])).filter(({ target_table }) =>
      target_table.startsWith("es:"),
    );
    expect(pipelines.map((pipeline) => pipeline.name)).toEqual(["film_dim_es", "film_rating_agg_es"]);
    for (const pipeline of pipelines) {
      const { id } = await store.pipelines.create(pipeline, "test");
      await store.requests.run(id, "api");
      await until("the index is built", async () => (await store.pipelines.get(id)).status === "IDLE");
    }
    expect(await search.count("film_dim")).toBe(1000);
    expect(await search.count("film_rating_agg")).toBe(900);
    const find = async (query: string): Promise<string[]> => {
      const match = { title: { query, fuzziness: "AUTO", operator: "and" } };
      const { body } = await search.ask("POST", "/film_dim/_search", { query: { match } });
      return body.hits.hits.map(({ _source }: { _source: { title: string } }) => _source.title);
    };
    const [first] = await database.query("SELECT title FROM content.film_work WHERE title = 'Лунный телеграф'");
    expect(first).toBeDefined();
    expect((await find("луный тилеграф"))[0]).toBe("Лунный телеграф");
    expect(await find("лунного телеграфа")).toContain("Лунный телеграф");
    expect((await find("star wars"))[0]).toMatch(/^Star Wars/);

    const ofGenre = async (genre: string): Promise<number> => {
      const { body } = await search.ask("POST", "/film_dim/_count", { query: { term: { genres: genre } } });
      return body.count;
    };
    const before = await ofGenre("Sci-Fi");
    expect(before).toBeGreaterThan(0);
    await database.query("UPDATE content.genre SET name = 'Science Fiction' WHERE name = 'Sci-Fi'");
    await until("the index has followed", async () => (await ofGenre("Science Fiction")) === before);
    expect(await ofGenre("Sci-Fi")).toBe(0);
  },
);

it("R1.4 without a cluster the demo has no index", async () => {
  const { sinks, targets } = parseSettings({ TARGET_INDEXES: "film_*" }, process.cwd());
  const withoutCluster = { sinks, targets };
  const all = await demoPipelines({ ...database.settings, ...withoutCluster }, []);
  expect(all.map((pipeline) => pipeline.name)).toEqual(["film_dim_full", "film_rating_agg_full", "genre_dim_full"]);
});
