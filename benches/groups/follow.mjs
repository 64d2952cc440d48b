// A mart that follows: what it costs to bring single keys up to date, and what it costs the source to record changes.
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { openPostgresSource } from "../../dist/connectors/postgres/source.js";
import { FOLLOW, reading, recordChanges } from "../support/follow.mjs";
import { rowsByHand } from "../support/references.mjs";
import { createPipeline, dropPipeline, processorSeconds, runPipeline } from "../support/runner.mjs";
import { median } from "../support/statistics.mjs";
import { requireRun, timed } from "./loads.mjs";

const BY_HAND = "analytics.follow_by_hand";
const KEY = ["id"];

const grouped = (restriction = "") => `
  SELECT f.id, f.title, r.votes, r.average, c.comments
    FROM content.film f
    LEFT JOIN (SELECT film_id, count(*) AS votes, round(avg(score), 2) AS average
                 FROM content.rating ${restriction} GROUP BY film_id) r ON r.film_id = f.id
    LEFT JOIN (SELECT film_id, count(*) AS comments FROM content.comment ${restriction} GROUP BY film_id) c ON c.film_id = f.id`;
const QUERY = grouped();

let following;
let full;
let state;
/** As the reader, for what is written by hand. */
let reader;

async function createSource({ admin, rows }) {
  const films = Math.round(rows / 10);
  await admin.query(`CREATE TABLE content.film (id int PRIMARY KEY, title text NOT NULL, slot int NOT NULL);
    INSERT INTO content.film SELECT n, 'Film ' || n, n % 100 FROM generate_series(1, ${films}) n;
    CREATE TABLE content.rating (id bigint PRIMARY KEY, film_id int NOT NULL, score int NOT NULL);
    INSERT INTO content.rating SELECT n, n % ${films} + 1, n % 10 FROM generate_series(1, ${rows * 5}) n;
    CREATE INDEX ON content.rating (film_id);
    CREATE TABLE content.comment (id bigint PRIMARY KEY, film_id int NOT NULL);
    INSERT INTO content.comment SELECT n, n % ${films} + 1 FROM generate_series(1, ${rows}) n;
    CREATE INDEX ON content.comment (film_id)`);
  await admin.query("VACUUM (ANALYZE) content.film, content.rating, content.comment");
}

const change = ({ admin }, slots) =>
  admin.query(`UPDATE content.film SET title = 'Changed ' || md5(random()::text) WHERE slot < ${slots}`);

/** Both sides bring the same keys up to date. */
const someKeys = (name, slots) => async (world, round) => {
  // What other steps have changed is not measured here.
  await runPipeline(world, following);
  const { rowCount: keys } = await change(world, slots);
  const byHand = async () => ({ [`${name}, by hand`]: { ms: await timed(world, () => writeByHand(world, slots)) } });
  const ours = async () => {
    const run = await runPipeline(world, following);
    requireRun(run, { rows_read: keys, rows_written: keys });
    return { [name]: { ms: run.ms, note: `${keys} keys in ${run.batches} batches` } };
  };
  const [first, second] = round % 2 === 0 ? [byHand, ours] : [ours, byHand];
  return { ...(await first()), ...(await second()) };
};

/** What somebody would write who knows exactly which keys have changed. */
async function writeByHand({ admin }, slots) {
  const { rows } = await admin.query(`SELECT array_agg(id)::text AS ids FROM content.film WHERE slot < ${slots}`);
  await rowsByHand(reader, admin, BY_HAND, onlyOf(rows[0].ids));
}

const onlyOf = (ids) => `${grouped(`WHERE film_id = ANY ('${ids}'::int[])`)} WHERE f.id = ANY ('${ids}'::int[])`;

async function wholeLoad(world) {
  await change(world, 1);
  const run = await runPipeline(world, full);
  return { "full load of it": { ms: run.ms, note: `${run.rows_read} rows` } };
}

/** The statements that read 1 % of the keys: restricted as the plan says, and around the query. */
async function restriction({ admin }, round) {
  const { rows } = await admin.query(`SELECT id::text FROM content.film WHERE slot = ${round % 100}`);
  const keys = rows.map(({ id }) => [id]);
  const ids = `'{${keys.join(",")}}'::int[]`;
  // All columns: PostgreSQL leaves out a grouped side of which nothing is asked.
  const inside = await timedQuery(admin, `SELECT q.* FROM (${state.plan.restrictedTo(keys)}) AS q`);
  const outside = await timedQuery(admin, `SELECT o.* FROM (${QUERY}) AS o WHERE o.id = ANY (${ids})`);
  return { "restricted inside": { ms: inside }, "restricted outside": { ms: outside } };
}

async function timedQuery(client, text) {
  const startedAt = performance.now();
  await client.query(text);
  return performance.now() - startedAt;
}

const ROUNDS_AT_ONCE = 20;

/** Without the run around them; what is found is written as by hand. */
async function rounds(world) {
  const source = openPostgresSource(reading(world));
  const follower = await source.openFollower({ query: QUERY, columns: state.columns, key: KEY, tables: {} });
  const limits = { maxChanges: 1_000_000, maxKeys: 1_000_000 };
  const times = { empty: 0, one: 0 };
  try {
    let position = await nextPosition(follower);
    for (let turn = 0; turn < ROUNDS_AT_ONCE; turn++) {
      for (const kind of ["empty", "one"]) {
        if (kind === "one")
          await world.admin.query(`UPDATE content.film SET title = md5(random()::text) WHERE id = ${turn + 1}`);
        const startedAt = performance.now();
        const round = await follower.openRound();
        const found = await round.keysSince(position, limits);
        if (found.kind !== "keys" || found.keys.length !== (kind === "one" ? 1 : 0))
          throw new Error(JSON.stringify(found));
        if (found.keys.length > 0) {
          const rows = await round.open(found.keys);
          await rows.read(10);
          await rows.close();
          await rowsByHand(reader, world.admin, BY_HAND, onlyOf(`{${found.keys.join(",")}}`));
        }
        position = round.position;
        await round.close();
        times[kind] += performance.now() - startedAt;
      }
    }
  } finally {
    await follower.close();
    await source.close();
  }
  return {
    "empty round": { ms: times.empty / ROUNDS_AT_ONCE },
    "round with one key": { ms: times.one / ROUNDS_AT_ONCE },
  };
}

async function nextPosition(follower) {
  const round = await follower.openRound();
  await round.close();
  return round.position;
}

const CHECK_SECONDS = 0.1;
const CHANGES = 15;
const LOOK_EVERY_MS = 3;

/** From the commit at the source to the row in the mart, started by the watcher; and the bare statements for one key. */
async function latency(world) {
  const { admin, store } = world;
  const config = { ...FOLLOW, follow: { ...FOLLOW.follow, check_every_seconds: CHECK_SECONDS } };
  const watched = await createPipeline(world, { source_query: QUERY, ...config });
  const until = async (isThere) => {
    for (const since = performance.now(); !(await isThere()); ) {
      if (performance.now() - since > 60_000) throw new Error("The mart does not follow.");
      await delay(LOOK_EVERY_MS);
    }
  };
  const ours = [];
  const bare = [];
  try {
    await until(async () => (await store.follow.get(watched.id)).position !== null);
    for (let id = 1; id <= CHANGES; id++) {
      // At any moment between two looks.
      await delay(1000 * CHECK_SECONDS * (5 + Math.random()));
      await admin.query(`UPDATE content.film SET title = 'Latency ' || md5(random()::text) WHERE id = ${id}`);
      const startedAt = performance.now();
      const shown = `SELECT FROM ${watched.target_table} t JOIN content.film f USING (id, title) WHERE id = ${id}`;
      await until(async () => (await admin.query(shown)).rowCount === 1);
      ours.push(performance.now() - startedAt);
      const statementsAt = performance.now();
      await rowsByHand(reader, admin, BY_HAND, onlyOf(`{${id}}`));
      bare.push(performance.now() - statementsAt);
    }
  } finally {
    await until(async () => (await store.pipelines.get(watched.id)).status === "IDLE");
    await dropPipeline(world, watched);
  }
  const longest = Math.max(...ours).toFixed(0);
  return {
    "from commit to mart": { ms: median(ours), note: `asked every ${CHECK_SECONDS} s; the longest ${longest} ms` },
    "bare statements": { ms: median(bare) },
  };
}

const UPDATES = 5000;

/** Processor time of the session that updates, one row by one statement, with and without the trigger. */
async function triggerCost({ admin }) {
  const { rows } = await admin.query("SELECT pg_backend_pid() AS pid");
  const spent = async () => {
    const before = await processorSeconds(rows[0].pid);
    await admin.query("BEGIN");
    for (let id = 1; id <= UPDATES; id++) {
      await admin.query("UPDATE content.film SET title = md5(random()::text) WHERE id = $1", [id]);
    }
    await admin.query("COMMIT");
    return 1000 * ((await processorSeconds(rows[0].pid)) - before);
  };
  await spent();
  const recorded = await spent();
  const { rows: triggers } = await admin.query(
    "SELECT tgname FROM pg_trigger WHERE tgrelid = 'content.film'::regclass AND NOT tgisinternal",
  );
  for (const { tgname } of triggers) await admin.query(`ALTER TABLE content.film DISABLE TRIGGER ${tgname}`);
  const bare = await spent();
  for (const { tgname } of triggers) await admin.query(`ALTER TABLE content.film ENABLE ALWAYS TRIGGER ${tgname}`);
  return { "updates that are recorded": { ms: recorded }, "bare updates": { ms: bare } };
}

export default {
  name: "follow",
  async setUp(world) {
    await createSource(world);
    reader = new pg.Client({ connectionString: world.readerUrl });
    await reader.connect();
    world.onClose(() => reader.end());
    state = await recordChanges(world, QUERY, KEY);
    following = await createPipeline(world, { source_query: QUERY, ...FOLLOW, batch_size: 5000 });
    full = await createPipeline(world, { source_query: QUERY, mode: "full", batch_size: 5000 });
    for (const pipeline of [following, full]) await runPipeline(world, pipeline);
    await world.admin.query(`CREATE TABLE ${BY_HAND} (LIKE ${following.target_table} INCLUDING ALL);
      INSERT INTO ${BY_HAND} SELECT * FROM ${following.target_table}`);
    await world.admin.query(`VACUUM (ANALYZE) ${BY_HAND}, ${following.target_table}, ${full.target_table}`);
  },
  async tearDown(world) {
    for (const pipeline of [following, full]) await dropPipeline(world, pipeline);
    await world.admin.query(`DROP TABLE ${BY_HAND}, content.film, content.rating, content.comment`);
  },
  steps: [
    { gives: ["full load of it"], measure: wholeLoad },
    { gives: ["1 % of the keys", "1 % of the keys, by hand"], measure: someKeys("1 % of the keys", 1) },
    { gives: ["20 % of the keys", "20 % of the keys, by hand"], measure: someKeys("20 % of the keys", 20) },
    { gives: ["restricted inside", "restricted outside"], measure: restriction },
    { gives: ["empty round", "round with one key"], measure: rounds },
    { gives: ["from commit to mart", "bare statements"], measure: latency },
    { gives: ["updates that are recorded", "bare updates"], measure: triggerCost },
  ],
  ratios: [
    {
      name: "follow-1",
      title: "Follow 1 % of the keys of a mart over two grouped tables ÷ a full load of it",
      ours: "1 % of the keys",
      reference: "full load of it",
      target: 0.1,
    },
    {
      name: "follow-20",
      title: "The same with 20 % of the keys",
      ours: "20 % of the keys",
      reference: "full load of it",
      target: 0.75,
    },
    {
      name: "follow-by-hand",
      title: "Follow 1 % of the keys ÷ COPY and upsert by hand for exactly those keys",
      ours: "1 % of the keys",
      reference: "1 % of the keys, by hand",
      target: 1.5,
    },
    {
      name: "follow-20-by-hand",
      title: "The same with 20 % of the keys",
      ours: "20 % of the keys",
      reference: "20 % of the keys, by hand",
      target: 1.5,
    },
    {
      name: "follow-inside",
      title: "The query for 1 % of the keys, restricted inside ÷ restricted around it",
      ours: "restricted inside",
      reference: "restricted outside",
      target: 0.1,
    },
    {
      name: "follow-empty",
      title: "A round that finds nothing ÷ a round with one key",
      ours: "empty round",
      reference: "round with one key",
      target: 0.5,
    },
    {
      name: "follow-latency",
      title: "From a commit at the source to the row in the mart, asked every 0.1 s ÷ the bare statements for that row",
      ours: "from commit to mart",
      reference: "bare statements",
      target: 20,
    },
    {
      name: "follow-trigger",
      title: "Processor time of updates that are recorded ÷ of bare ones",
      ours: "updates that are recorded",
      reference: "bare updates",
      target: 2,
    },
  ],
};
