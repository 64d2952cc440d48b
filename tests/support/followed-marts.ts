import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import type { Bench } from "./pipelines.ts";
import { until } from "./until.ts";

/** A small cinema, and a mart over three of its tables whose changes all concern it. */

export const CINEMA = `
  CREATE TABLE content.film (id bigint PRIMARY KEY, title text, note text);
  CREATE TABLE content.genre (id bigint PRIMARY KEY, name text);
  CREATE TABLE content.film_genre (film_id bigint, genre_id bigint, PRIMARY KEY (film_id, genre_id));
  CREATE INDEX ON content.film_genre (genre_id);
  INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 200) n;
  INSERT INTO content.genre SELECT n, 'genre ' || n FROM generate_series(1, 10) n;
  INSERT INTO content.film_genre SELECT n, n % 10 + 1 FROM generate_series(1, 200) n;`;

export const FILMS = `
  SELECT f.id AS film_id, f.title,
         (SELECT string_agg(g.name, ', ' ORDER BY g.name)
            FROM content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id
           WHERE fg.film_id = f.id) AS genres
    FROM content.film f`;

export const FILM_MART = { source_query: FILMS, target_key: ["film_id"], mode: "follow" as const };

/** The rows of a mart that its query does not have, and those that it lacks. */
export async function violations(bench: Pick<Bench, "query">, { target_table, source_query }: Pipeline) {
  return bench.query(`
    SELECT 'too much' AS what, x::text AS row FROM (TABLE ${target_table} EXCEPT ALL (${source_query})) AS x
    UNION ALL
    SELECT 'missing', x::text FROM ((${source_query}) EXCEPT ALL TABLE ${target_table}) AS x`);
}

export function untilEqual(bench: Pick<Bench, "query">, pipeline: Pipeline): Promise<true> {
  return until("the mart is equal to its query", async () =>
    (await violations(bench, pipeline)).length === 0 ? true : undefined,
  );
}

export const reasonOf = ({ notes }: Run): string | undefined =>
  notes.find((note) => note.startsWith("Everything was compared"));
