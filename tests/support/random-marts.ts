import type pg from "pg";
import { expect } from "vitest";
import type { FollowRound } from "../../src/connectors/follower.ts";
import type { FollowPosition } from "../../src/domain/follow.ts";
import { type Random, seededRandom } from "./chaos-random.ts";
import { type FollowedQuery, type FollowedSource, keyedTable, LIMITS } from "./followed-source.ts";

/** Two tables, one of them in partitions, a mart over both, and what may happen to them. */

const ID = { name: "id", type: "integer" };
const TITLE = { name: "title", type: "text" };
const FILM = keyedTable("content", "film", ID, ["title", "region"]);
const REGION = keyedTable("content", "region", { name: "film_id", type: "integer" }, ["name"]);
const QUERY = `SELECT f.id, string_agg(f.title, '+' ORDER BY f.title) || (SELECT coalesce(string_agg(r.name, ',' ORDER BY r.name), '') FROM content.region r WHERE r.film_id = f.id) AS title
  FROM content.film f GROUP BY f.id`;

export const RANDOM_QUERY = { query: QUERY, key: ["id"], columns: [ID, TITLE], tables: [FILM, REGION] };
export const RANDOM_TABLES = ["content.film", "content.region"];

export async function createRandomTables(source: FollowedSource, limits: { maxRows?: number } = {}): Promise<void> {
  await source.query(`CREATE TABLE content.film (id integer, title text, region text, other integer) PARTITION BY LIST (region);
    CREATE TABLE content.film_a PARTITION OF content.film FOR VALUES IN ('a');
    CREATE TABLE content.film_b PARTITION OF content.film FOR VALUES IN ('b');
    CREATE TABLE content.region (film_id integer, name text)`);
  await source.install([FILM, REGION], limits);
}

/** Compared with its query after each round, in the snapshot of the round. */
export class RandomMart {
  readonly rows = new Map<string, string>();
  readonly #query: FollowedQuery;
  position: FollowPosition | undefined;
  readonly kinds = { keys: 0, everything: 0 };
  readonly reasons = new Set<string>();

  constructor(query: FollowedQuery) {
    this.#query = query;
  }

  sync(reader: pg.Client): Promise<void> {
    return this.#query.inRound(async (round) => {
      const found =
        this.position === undefined
          ? ({ kind: "everything", reason: "First." } as const)
          : await round.keysSince(this.position, LIMITS);
      const expected = await everything(reader, round);
      this.kinds[found.kind] += 1;
      if (found.kind === "everything") {
        this.reasons.add(found.reason);
        this.rows.clear();
        for (const [id, title] of expected) this.rows.set(id, title);
      } else if (found.keys.length > 0) {
        const batch = await (await round.open(found.keys)).read(1000);
        for (const [key = ""] of found.keys) this.rows.delete(key);
        for (const [id, title] of batch.rows()) this.rows.set(id ?? "", title ?? "");
      }
      this.position = round.position;
      expect(new Map([...this.rows].sort())).toEqual(new Map([...expected].sort()));
    });
  }
}

async function everything(reader: pg.Client, { exportedSnapshot }: FollowRound): Promise<Map<string, string>> {
  await reader.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '${exportedSnapshot}'`);
  const { rows } = await reader.query<{ id: number; title: string }>(QUERY);
  await reader.query("COMMIT");
  return new Map(rows.map(({ id, title }) => [String(id), title]));
}

export function randomStatements({ below, pick }: Random): readonly string[] {
  const id = below(12);
  const region = pick(["a", "b"]);
  const choices = [
    `INSERT INTO content.film VALUES (${id}, 'n${below(100)}', '${region}')`,
    `UPDATE content.film SET title = 't${below(100)}' WHERE id = ${id}`,
    `UPDATE content.film SET region = '${region}' WHERE id = ${id}`,
    `UPDATE content.film SET other = ${below(100)}`,
    `DELETE FROM content.film WHERE id = ${id}`,
    `INSERT INTO content.region VALUES (${id}, 'r${below(5)}')`,
    `UPDATE content.region SET film_id = ${below(12)} WHERE film_id = ${id}`,
    `DELETE FROM content.region WHERE film_id = ${id}`,
  ];
  return Array.from({ length: 1 + below(3) }, () => pick(choices));
}

const WRITERS = 3;

/** Where the machine is busy, every round of a few steps may find that changes were forgotten: then some more are made. */
const MOST_LONGER = 100;

/** Writers, two marts and somebody who forgets, all at the same time; returns how many rounds had keys. */
export async function followAtTheSameTime(source: FollowedSource, steps: number): Promise<number> {
  const marts = [new RandomMart(await source.follow(RANDOM_QUERY)), new RandomMart(await source.follow(RANDOM_QUERY))];
  const isEnough = (step: number): boolean =>
    step >= (marts.every(({ kinds }) => kinds.keys > 0) ? steps : steps * MOST_LONGER);
  let writing = WRITERS;
  const write = async (stream: number): Promise<void> => {
    const [random, client] = [seededRandom(stream), await source.connect()];
    await client.query("SET lock_timeout = '200ms'");
    for (let step = 0; !isEnough(step); step += 1) {
      await client.query(`BEGIN ISOLATION LEVEL ${random.pick(["READ COMMITTED", "REPEATABLE READ"])}`);
      for (const text of randomStatements(random)) {
        await client.query("SAVEPOINT s");
        await client.query(text).catch(() => client.query("ROLLBACK TO s"));
      }
      await client.query("COMMIT");
    }
    writing -= 1;
  };
  const follow = async (mart: RandomMart): Promise<void> => {
    const reader = await source.connect();
    while (writing > 0) await mart.sync(reader);
    await mart.sync(reader);
  };
  const forget = async (): Promise<void> => {
    const watch = source.watch();
    while (writing > 0) {
      await watch.forgetSeen(
        marts.flatMap(({ position }, n) =>
          position === undefined ? [] : [{ pipelineId: `p${n}`, position, tables: RANDOM_TABLES }],
        ),
      );
    }
  };
  await Promise.all([...Array.from({ length: WRITERS }, (_, n) => write(n)), ...marts.map(follow), forget()]);
  expect(marts[0]?.rows).toEqual(marts[1]?.rows);
  return marts[0]?.kinds.keys ?? 0;
}
