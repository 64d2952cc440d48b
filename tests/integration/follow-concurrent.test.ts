import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { seededRandom } from "../support/chaos-random.ts";
import { CINEMA, FILM_MART, violations } from "../support/followed-marts.ts";
import { LONG } from "../support/long.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/**
 * Several sessions change the source at once, in transactions that overlap, while marts follow it by themselves and are
 * swept all the time. A sweep compares in the snapshot of a round: so not only the end is right, but every moment at which
 * one looked.
 */

const WRITERS = 4;
const TRANSACTIONS = LONG ? 300 : 40;

let bench: Bench;
beforeAll(async () => {
  bench = await openBench({ RUNNER_CONCURRENCY: "4" });
  await bench.query(CINEMA);
  await bench.startRunner();
});
afterAll(() => bench.close());

const MARTS: readonly { readonly source_query: string; readonly target_key: readonly string[] }[] = [
  FILM_MART,
  {
    source_query:
      "SELECT g.id AS genre_id, count(fg.film_id) AS films FROM content.genre g LEFT JOIN content.film_genre fg ON fg.genre_id = g.id GROUP BY g.id",
    target_key: ["genre_id"],
  },
  // Its key is made of two tables, neither of which has all of it.
  {
    source_query:
      "SELECT f.title, g.name, count(*) AS films FROM content.film f JOIN content.film_genre fg ON fg.film_id = f.id JOIN content.genre g ON g.id = fg.genre_id WHERE f.title IS NOT NULL AND g.name IS NOT NULL GROUP BY f.title, g.name",
    target_key: ["title", "name"],
  },
];

it("marts that follow are equal to their queries whenever a sweep looks, and in the end", async () => {
  const follow = { check_every_seconds: 0.1 };
  const marts = await Promise.all(
    MARTS.map((mart) => bench.create({ ...mart, mode: "follow", follow, max_delete_percent: 100, allow_empty: true })),
  );
  for (const mart of marts) await bench.run(mart);
  await Promise.all(marts.map(({ id }) => bench.store.pipelines.update(id, { sweep: "1s" }, { author: "test" })));
  await Promise.all(Array.from({ length: WRITERS }, (_, n) => write(n)));
  for (const mart of marts) await untilSettled(mart);
  for (const { id, name } of marts) {
    const { items } = await bench.store.runs.list(id, { limit: 100 });
    expect(items.filter(({ status }) => status === "FAILED").map(({ error }) => error)).toEqual([]);
    expect(items.some(({ trigger }) => trigger === "sweep" || trigger === "change")).toBe(true);
    const { repaired, lastSweepAt } = await bench.store.follow.get(id);
    expect({ name, repaired }).toEqual({ name, repaired: 0 });
    expect(lastSweepAt).not.toBeNull();
  }
});

async function untilSettled(mart: Pipeline): Promise<void> {
  await until("the mart is equal to its query", async () => (await violations(bench, mart)).length === 0);
}

/** One session; its transactions stay open for a while, so that they overlap with the others and with rounds. */
async function write(stream: number): Promise<void> {
  const { below, chance } = seededRandom(stream);
  const number = (most: number): number => below(most) + 1;
  const client = new pg.Client({ connectionString: bench.database.url });
  await client.connect();
  try {
    for (let n = 0; n < TRANSACTIONS; n += 1) {
      await client.query("BEGIN");
      for (let statements = number(4); statements > 0; statements -= 1) {
        await client.query("SAVEPOINT one");
        await client.query(statementOf(number)).catch(() => client.query("ROLLBACK TO SAVEPOINT one"));
        if (chance(0.3)) await client.query("SELECT pg_sleep($1)", [number(20) / 100]);
      }
      await client.query(chance(0.9) ? "COMMIT" : "ROLLBACK").catch(() => client.query("ROLLBACK"));
    }
  } finally {
    await client.end();
  }
}

/** A key that is taken, or a deadlock, fails one of them now and then. */
function statementOf(number: (most: number) => number): string {
  const [film, genre, other] = [number(220), number(12), number(220)];
  const statements = [
    `UPDATE content.film SET title = 'title ${number(5)}' WHERE id = ${film}`,
    `UPDATE content.film SET title = NULL WHERE id = ${film}`,
    `DELETE FROM content.film WHERE id = ${film}`,
    `INSERT INTO content.film VALUES (${film}, 'title ${number(5)}')`,
    `UPDATE content.film SET id = ${other} WHERE id = ${film}`,
    `UPDATE content.genre SET name = 'name ${number(5)}' WHERE id = ${genre}`,
    `INSERT INTO content.genre VALUES (${genre}, 'name ${number(5)}')`,
    `DELETE FROM content.genre WHERE id = ${genre}`,
    `INSERT INTO content.film_genre VALUES (${film}, ${genre})`,
    `UPDATE content.film_genre SET film_id = ${other} WHERE film_id = ${film}`,
    `UPDATE content.film_genre SET genre_id = ${genre} WHERE film_id = ${film}`,
    `DELETE FROM content.film_genre WHERE film_id = ${film}`,
  ];
  return statements[number(statements.length) - 1] as string;
}
