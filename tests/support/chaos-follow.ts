import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installOwnChanges } from "../../src/connectors/postgres/changes/install-own.ts";
import { readQueryFacts } from "../../src/connectors/postgres/changes/query-facts.ts";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import type { FollowPlan } from "../../src/sql-analysis/follow-plan.ts";
import { planFollow } from "../../src/sql-analysis/plan-follow.ts";
import { askedRuns } from "./asked-runs.ts";
import { type Chaos, diedHolding, openChaos, type Path } from "./chaos.ts";
import { loadTables } from "./chaos-kinds.ts";
import type { TestDatabase } from "./database.ts";
import { LONG } from "./long.ts";
import { until } from "./until.ts";

/** Runners that are killed while they follow the changes of a source. */

const FILMS = 600;
const GENRES = 10;

export const QUERY = `
  SELECT f.id, f.title, (SELECT string_agg(g.name, ', ' ORDER BY g.name)
                           FROM content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id
                          WHERE fg.film_id = f.id) AS genres
    FROM content.film f`;

/** Five times as many keys make a chunk. */
const CONFIG = { target_key: ["id"], mode: "follow", batch_size: 10, create_target: true, max_delete_percent: 100 };

/** The runs of a test are those that it asks for; a new pipeline that is enabled starts by itself. */
const FOLLOWING = { ...CONFIG, source_query: QUERY, follow: { check_every_seconds: 3600 }, enabled: false };

/** Runners of marts that follow, where the source records its changes in one of the ways there are. */
export interface FollowChaos extends Chaos {
  /** How many marts are followed at the same time, until all are killed. */
  readonly atOnce: number;
  /** May be the meta-store's own. */
  readonly source: Pick<TestDatabase, "query">;
  createMart(name: string, more?: object): Promise<Pipeline>;
  /** What the owner of the source does. */
  recordChanges(pipeline: Pipeline): Promise<void>;
  /** In any order. */
  rowsOf(mart: Pipeline): Promise<readonly unknown[]>;
  /** Changes some rows of the mart, as somebody else might. */
  tamperWith(mart: Pipeline): Promise<void>;
  /** What unfinished loads left beside the marts. */
  leftovers(): Promise<readonly unknown[]>;
  /** After the kills, before anybody takes over: lets the source forget whatever is not needed any more. */
  forgetSeen?(): Promise<void>;
  /** While a runner watches, after rounds of all marts: the source has forgotten what came before them. */
  untilMovedOn?(): Promise<void>;
}

/**
 * - `round`: it followed before, and many keys have changed since.
 * - `comparison`: it never ran.
 * - `sweep`: somebody tampered with the mart, and its sweep is due.
 */
type FollowKind = "round" | "comparison" | "sweep";

export type FollowKills = Readonly<Record<FollowKind, readonly string[]>>;

const POINTS: FollowKills = {
  round: [
    "claimed:1",
    "round_opened:1",
    "keys_found:1",
    "batch_read:1",
    "transaction_begun:1",
    "batch_staged:2",
    "batch_applied:2",
    "checkpoint_recorded:2",
    "data_committed:2",
    "chunk_committed:1",
    "chunk_committed:3",
    "position_moved:1",
    "before_finish:1",
  ],
  comparison: [
    "round_opened:1",
    "compare_noted:1",
    "batch_committed:4",
    "load_read:1",
    "load_applied:1",
    "load_committed:1",
    "position_moved:1",
  ],
  sweep: [
    "position_moved:1",
    "reconcile_batch:1",
    "sweep_compared:1",
    "compare_noted:1",
    "batch_committed:4",
    "load_committed:1",
  ],
};

/** Each point once, and everywhere in `npm run test:chaos`. */
export function followKills(long = LONG): FollowKills {
  if (long) return POINTS;
  return {
    round: ["round_opened:1", "keys_found:1", "chunk_committed:3", "position_moved:1"],
    comparison: ["compare_noted:1"],
    sweep: ["sweep_compared:1"],
  };
}

/** Every table, in every way. Done again and again, it changes something each time. */
export const change = (word: string): string => `
  UPDATE content.genre SET name = name || ' ${word}' WHERE id <= 3;
  UPDATE content.film SET title = '${word}' WHERE id % 50 = 0;
  DELETE FROM content.film WHERE id = (SELECT max(id) FROM content.film);
  INSERT INTO content.film SELECT max(id) + 1000, 'new ${word}' FROM content.film;
  UPDATE content.film SET id = -id WHERE id = (SELECT min(id) FROM content.film WHERE id > 0);
  UPDATE content.film_genre SET film_id = film_id + 1 WHERE film_id % 90 = 0 AND genre_id = film_id % ${GENRES} + 1;
  DELETE FROM content.film_genre WHERE film_id = (SELECT min(film_id) FROM content.film_genre)`;

export function describeFollowKills(where: string, kills: FollowKills, open: () => Promise<FollowChaos>): void {
  const kinds = (Object.keys(kills) as FollowKind[]).filter((kind) => kills[kind].length > 0);
  const killed = new Map<string, Pipeline>();
  let chaos: FollowChaos;

  beforeAll(async () => {
    chaos = await open();
    await createFollowedSource(chaos.source);
    const pipelines = new Map<FollowKind, Pipeline[]>();
    for (const kind of kinds) {
      pipelines.set(kind, await Promise.all(kills[kind].map((_, n) => chaos.createMart(`${kind}_${n}`))));
    }
    await followOnce(chaos, [...kinds.flatMap((kind) => (kind === "comparison" ? [] : (pipelines.get(kind) ?? [])))]);
    for (const kind of kinds) {
      const ofKind = pipelines.get(kind) ?? [];
      // One that waits for its turn must not start by itself.
      await chaos.query("UPDATE etl.etl_pipelines SET enabled = true WHERE starts_with(name, $1)", [kind]);
      await prepare(chaos, kind, ofKind);
      await Promise.all(ofKind.map(({ id }) => chaos.store.requests.run(id, "api")));
      await killAll(kind);
    }
    await chaos.forgetSeen?.();
    await chaos.source.query(change("after all kills"));
    await chaos.query("UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp() WHERE status = 'RUNNING'");
    chaos.runner(undefined, { RUNNER_CONCURRENCY: "6" });
    await chaos.atRest();
  });
  afterAll(() => chaos?.close());

  async function killAll(kind: FollowKind): Promise<void> {
    const waiting = [...kills[kind]];
    const killNext = async (): Promise<void> => {
      for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
        killed.set(`${kind} ${point}`, await killOne(chaos, point));
      }
    };
    await Promise.all(Array.from({ length: chaos.atOnce }, killNext));
  }

  describe.each(kinds)(`SIGKILL in a %s, ${where}`, (kind) => {
    it.each(kills[kind])("at %s the mart is equal to its query in the end", async (point) => {
      const pipeline = killed.get(`${kind} ${point}`) as Pipeline;
      const { id } = pipeline;
      expect(await differenceOf(chaos, pipeline)).toEqual([]);
      expect(await chaos.store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
      expect(await chaos.store.follow.get(id)).toMatchObject({
        position: expect.anything(),
        comparePosition: null,
        sweepWanted: false,
      });
      const runs = await askedRuns(chaos.store, id);
      expect(runs.map(({ error_code }) => error_code)).toContain("RUNNER_LOST");
      expect(runs[0]).toMatchObject({ status: "SUCCESS" });
      // A round that was interrupted is done again, and nothing else.
      if (kind === "round") expect(runs[0]).toMatchObject({ strategy: "follow", trigger: "recovery" });
      if (kind === "sweep") expect((await chaos.store.follow.get(id)).repaired).toBeGreaterThan(0);
    });
  });

  it("leaves nothing behind", async () => {
    expect(await chaos.leftovers()).toEqual([]);
  });
}

/** Into tables. */
export async function openFollowChaos(path: Path): Promise<FollowChaos> {
  const chaos = await openChaos(path);
  const { database, target } = chaos;
  return {
    ...chaos,
    atOnce: 3,
    source: database,
    createMart: (name, more = {}) => chaos.create({ ...FOLLOWING, name, target_table: `analytics.${name}`, ...more }),
    recordChanges: (pipeline) => recordChangesOf(database, pipeline),
    rowsOf: ({ target_table }) => jsonOf(target, `SELECT id, title, genres FROM ${target_table}`),
    async tamperWith({ target_table }) {
      await target.query(`UPDATE ${target_table} SET title = 'tampered' WHERE id BETWEEN 10 AND 14`);
    },
    leftovers: () => loadTables(chaos),
  };
}

export async function createFollowedSource({ query }: Pick<TestDatabase, "query">): Promise<void> {
  await query(`
    CREATE TABLE content.film (id bigint PRIMARY KEY, title text);
    CREATE TABLE content.genre (id bigint PRIMARY KEY, name text);
    CREATE TABLE content.film_genre (film_id bigint, genre_id bigint);
    CREATE INDEX ON content.film_genre (film_id); CREATE INDEX ON content.film_genre (genre_id);
    INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, ${FILMS}) n;
    INSERT INTO content.genre SELECT n, 'genre ' || n FROM generate_series(1, ${GENRES}) n;
    INSERT INTO content.film_genre SELECT n, n % ${GENRES} + 1 FROM generate_series(1, ${FILMS}) n;
    ANALYZE content.film, content.genre, content.film_genre`);
}

/** What a mart has that its query has not, and the other way round. */
export async function differenceOf(chaos: FollowChaos, mart: Pipeline): Promise<string[]> {
  const found = (await chaos.rowsOf(mart)).map((row) => JSON.stringify(row)).sort();
  const wanted = (await jsonOf(chaos.source, QUERY)).map((row) => JSON.stringify(row)).sort();
  return [...found.filter((row) => !wanted.includes(row)), ...wanted.filter((row) => !found.includes(row))];
}

/** Their first runs. */
export async function followOnce(chaos: FollowChaos, pipelines: readonly Pipeline[]): Promise<void> {
  const { query } = chaos;
  await chaos.recordChanges(pipelines[0] as Pipeline);
  await chaos.source.query("ANALYZE");
  const ids = pipelines.map(({ id }) => id);
  await query("UPDATE etl.etl_pipelines SET enabled = true WHERE id = ANY ($1::uuid[])", [ids]);
  await Promise.all(ids.map((id) => chaos.store.requests.run(id, "api")));
  const runner = chaos.runner(undefined, { RUNNER_CONCURRENCY: String(chaos.atOnce) });
  await chaos.atRest();
  if (chaos.untilMovedOn !== undefined) {
    await chaos.source.query(change("first round"));
    await Promise.all(ids.map((id) => chaos.store.requests.run(id, "api")));
    await chaos.atRest();
    await chaos.untilMovedOn();
  }
  await runner.stop();
  const states = await Promise.all(pipelines.map(({ id }) => chaos.store.follow.get(id)));
  if (states.some(({ position }) => position === null)) throw new Error(`not followed: ${runner.output()}`);
  await query("ANALYZE; UPDATE etl.etl_pipelines SET enabled = false");
}

/** A mart that follows by itself as soon as there is a runner, whose source records what it needs. */
export async function createRecorded(chaos: Chaos, name: string, source_query: string): Promise<Pipeline> {
  const follow = { check_every_seconds: 0.1 };
  const target = { target_table: `analytics.${name}`, ...CONFIG };
  const pipeline = await chaos.create({ name, source_query, ...target, follow, enabled: false });
  await recordChangesOf(chaos.database, pipeline);
  await chaos.query("UPDATE etl.etl_pipelines SET enabled = true WHERE id = $1", [pipeline.id]);
  return pipeline;
}

export async function lastRunOf({ store }: Chaos, { id }: Pipeline): Promise<Run> {
  const [run] = (await store.runs.list(id, { limit: 1 })).items;
  if (run === undefined) throw new Error("It never ran.");
  return run;
}

export async function untilStatus({ store }: Chaos, { id }: Pipeline, ...statuses: string[]): Promise<string> {
  return until(`it is ${statuses.join(" or ")}`, async () => {
    const { status } = await store.pipelines.get(id);
    return statuses.includes(status) ? status : undefined;
  });
}

/** Its first run has ended. */
export async function untilFollowing(chaos: Chaos, pipeline: Pipeline): Promise<void> {
  await until("it follows", async () => (await chaos.store.follow.get(pipeline.id)).position !== null);
  await untilStatus(chaos, pipeline, "IDLE");
}

/** What the owner of a source does: runs the script that records what this pipeline needs. */
export async function recordChangesOf({ url }: TestDatabase, pipeline: Pipeline): Promise<void> {
  await installOwnChanges(url, "vitrina_reader", await planOf(url, pipeline));
}

/** In the database that it reads, as its administrator. */
export async function planOf(url: string, { source_query, target_key }: Pipeline): Promise<FollowPlan> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await planFollow(await readQueryFacts(client, source_query ?? ""), target_key, {});
  } finally {
    await client.end();
  }
}

async function prepare(chaos: FollowChaos, kind: FollowKind, marts: readonly Pipeline[]): Promise<void> {
  await chaos.source.query(change(`before ${kind}`));
  if (kind !== "sweep") return;
  for (const mart of marts) {
    await chaos.tamperWith(mart);
    await chaos.query("UPDATE etl.etl_pipelines SET sweep_wanted_at = now() WHERE id = $1", [mart.id]);
  }
}

/** Starts a runner that dies at the point; what it held stays its own until all are killed. */
async function killOne(chaos: Chaos, point: string): Promise<Pipeline> {
  const runner = chaos.runner(`${point}:kill`);
  await diedHolding(runner, point);
  const [held] = await chaos.query(
    `UPDATE etl.etl_runs r SET lease_expires_at = clock_timestamp() + interval '1 day' FROM etl.etl_runners n
      WHERE n.id = r.runner_id AND n.pid = $1 AND r.status = 'RUNNING' RETURNING r.pipeline_id AS id`,
    [runner.pid],
  );
  return chaos.store.pipelines.get(held?.["id"] as never);
}

async function jsonOf({ query }: Pick<TestDatabase, "query">, select: string): Promise<unknown[]> {
  return (await query(`SELECT to_json(r) AS row FROM (${select}) r`)).map(({ row }) => row);
}
