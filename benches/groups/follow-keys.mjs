// A mart that follows: how many keys it computes for each row that has really changed. A number, not a time.
import { FOLLOW, recordChanges } from "../support/follow.mjs";
import { createPipeline, dropPipeline, runPipeline } from "../support/runner.mjs";

const KEY = ["id"];
/** Half of it hides changes: rows that are left out, a maximum that stays, one more of what exists already. */
const QUERY = `
  SELECT m.id, m.title,
         (SELECT string_agg(l.name, ', ' ORDER BY l.name)
            FROM content.movie_label ml JOIN content.label l ON l.id = ml.label_id WHERE ml.movie_id = m.id) AS labels,
         (SELECT max(s.value) FROM content.score s WHERE s.movie_id = m.id) AS best,
         EXISTS (SELECT FROM content.note n WHERE n.movie_id = m.id AND n.shown) AS discussed
    FROM content.movie m WHERE NOT m.hidden`;

const CHANGES = 200;
/** So that a label is on as many movies whatever the size; otherwise renamed ones would decide. */
const MOVIES_OF_LABEL = 10;

let pipeline;
let random;

/** The same numbers in each bench. */
function seededRandom(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function sizes(rows) {
  const movies = Math.round(rows / 10);
  return { movies, labels: Math.round((movies * 2) / MOVIES_OF_LABEL) };
}

async function createSource({ admin, rows }) {
  const { movies, labels } = sizes(rows);
  await admin.query(`CREATE TABLE content.movie (id int PRIMARY KEY, title text NOT NULL, year int NOT NULL, hidden boolean NOT NULL);
    INSERT INTO content.movie SELECT n, 'Movie ' || n, 1950 + n % 70, n % 4 = 0 FROM generate_series(1, ${movies}) n;
    CREATE TABLE content.label (id int PRIMARY KEY, name text NOT NULL);
    INSERT INTO content.label SELECT n, 'Label ' || n FROM generate_series(0, ${labels - 1}) n;
    CREATE TABLE content.movie_label (movie_id int, label_id int, PRIMARY KEY (movie_id, label_id));
    INSERT INTO content.movie_label SELECT n, (n + k * 7) % ${labels} FROM generate_series(1, ${movies}) n, generate_series(0, 1) k;
    CREATE INDEX ON content.movie_label (label_id);
    CREATE TABLE content.score (id int PRIMARY KEY, movie_id int NOT NULL, value int NOT NULL);
    INSERT INTO content.score SELECT n, n % ${movies} + 1, n % 10 FROM generate_series(1, ${rows}) n;
    CREATE INDEX ON content.score (movie_id);
    CREATE TABLE content.note (id int PRIMARY KEY, movie_id int NOT NULL, shown boolean NOT NULL);
    INSERT INTO content.note SELECT n, n % ${movies} + 1, n % 2 = 0 FROM generate_series(1, ${movies * 2}) n;
    CREATE INDEX ON content.note (movie_id)`);
}

/** Each with the weight that it has in the mix. */
function changesOf(rows) {
  const { movies, labels } = sizes(rows);
  const movie = () => random(movies) + 1;
  const score = () => random(rows) + 1;
  const note = () => random(movies * 2) + 1;
  const label = () => random(labels);
  return [
    [5, () => `UPDATE content.movie SET title = 'Title ${random(1e9)}' WHERE id = ${movie()}`],
    [5, () => `UPDATE content.movie SET year = year + 1 WHERE id = ${movie()}`],
    [3, () => `UPDATE content.movie SET hidden = NOT hidden WHERE id = ${movie()}`],
    [10, () => `UPDATE content.score SET value = ${random(10)} WHERE id = ${score()}`],
    [5, () => `UPDATE content.score SET movie_id = ${movie()} WHERE id = ${score()}`],
    [5, () => `INSERT INTO content.score SELECT max(id) + 1, ${movie()}, ${random(10)} FROM content.score`],
    [5, () => `DELETE FROM content.score WHERE id = ${score()}`],
    [5, () => `INSERT INTO content.movie_label VALUES (${movie()}, ${label()}) ON CONFLICT DO NOTHING`],
    [5, () => `DELETE FROM content.movie_label WHERE movie_id = ${movie()}`],
    [5, () => `UPDATE content.note SET shown = NOT shown WHERE id = ${note()}`],
    [1, () => `UPDATE content.label SET name = 'Name ${random(1e9)}' WHERE id = ${label()}`],
  ].flatMap(([weight, change]) => Array(weight).fill(change));
}

async function keysAndRows(world) {
  const changes = changesOf(world.rows);
  for (let n = 0; n < CHANGES; n++) await world.admin.query(changes[random(changes.length)]());
  const run = await runPipeline(world, pipeline);
  const counted = run.notes.map((note) => /concerned ([\d,]+) keys?,/.exec(note)?.[1]).find(Boolean);
  const keys = Number(counted?.replaceAll(",", ""));
  const changed = run.rows_written + run.rows_deleted;
  if (!(keys >= changed && changed > 0)) throw new Error(`${changed} rows were changed. ${run.notes.join(" ")}`);
  await requireEqual(world);
  return {
    "keys computed": { ms: keys, note: `after ${CHANGES} random changes` },
    "rows that changed": { ms: changed, note: `${run.rows_deleted} of them deleted` },
  };
}

/** Few keys of a wrong mart would be worth nothing. */
async function requireEqual({ admin }) {
  const { rows } = await admin.query(`SELECT count(*)::int AS wrong FROM (
    (TABLE ${pipeline.target_table} EXCEPT ${QUERY}) UNION ALL (${QUERY} EXCEPT TABLE ${pipeline.target_table})) AS d`);
  if (rows[0].wrong > 0) throw new Error(`${rows[0].wrong} rows of the mart differ from its query.`);
}

export default {
  name: "follow, keys",
  unit: "keys",
  async setUp(world) {
    random = seededRandom(13);
    await createSource(world);
    await recordChanges(world, QUERY, KEY);
    pipeline = await createPipeline(world, { source_query: QUERY, ...FOLLOW });
    await runPipeline(world, pipeline);
  },
  async tearDown(world) {
    await dropPipeline(world, pipeline);
    await world.admin.query(
      "DROP TABLE content.movie, content.label, content.movie_label, content.score, content.note",
    );
  },
  steps: [{ gives: ["keys computed", "rows that changed"], measure: keysAndRows }],
  ratios: [
    {
      name: "follow-keys",
      title: "Keys that a mart computes again after random changes ÷ rows of it that these have changed",
      ours: "keys computed",
      reference: "rows that changed",
      target: 5,
    },
  ],
};
