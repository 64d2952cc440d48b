// The demo scenario against a running API: fills the marts, compares them with their sources, and takes a pipeline of its
// own through create, run, pause, resume, a change during a run, and delete. It may be run any number of times.
//
//   npm start, then in a second terminal:  node examples/cinema/demo.mjs
//   in containers:                         make demo
//
// If the API requires a login and VITRINA_API_KEY is not set, the script creates a key for itself directly in the
// database, and revokes it at the end. Nobody ever sees it.
import { execFile } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const API = `${process.env.VITRINA_API_URL ?? "http://127.0.0.1:8000"}/api/v1`;
const MARTS = [
  "film_dim_full",
  "film_rating_agg_full",
  "genre_dim_full",
  "film_shelf_full",
  "viewer_segments_full",
  "film_dim_es",
  "film_rating_agg_es",
];
const PATIENCE_MS = 120_000;

/** Small batches, so that there is time to pause it. */
const RATING_LOG = {
  name: "rating_log_demo",
  description: "Every rating with the title of its film. Made by the demo scenario.",
  source_query:
    "SELECT r.id AS id, f.title AS title, r.rating AS rating, r.modified AS modified FROM ugc.ratings r JOIN content.film_work f ON f.id = r.film_id",
  target_table: "analytics.rating_log_demo",
  target_key: ["id"],
  create_target: true,
  batch_size: 20,
};

let key = process.env.VITRINA_API_KEY;

async function ask(method, path, body) {
  const response = await fetch(`${API}${path}`, {
    method,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.ok) return text === "" ? undefined : JSON.parse(text);
  throw new Error(`${method} ${path}: ${response.status} ${text}`);
}

/** Asks until the answer is the expected one. */
async function until(what, answer) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await answer();
    if (found) return found;
    if (Date.now() > end) throw new Error(`Waited ${PATIENCE_MS / 1000} seconds without success: ${what}.`);
    await delay(100);
  }
}

function keyCommand(...args) {
  const program = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));
  return promisify(execFile)(process.execPath, [program, "key", ...args]);
}

/** Sets the key, if one is needed, and returns a function that revokes it. */
async function logIn() {
  if (key !== undefined || (await fetch(`${API}/pipelines`)).status !== 401) return async () => undefined;
  const options = ["--name=demo scenario", "--role=editor", "--expires-in=1h"];
  const { stdout, stderr } = await keyCommand("create", ...options);
  key = stdout.trim();
  const [, id] = /^Key (\S+) /.exec(stderr);
  return () => keyCommand("revoke", id);
}

async function run(name) {
  const { run_request } = await ask("POST", `/pipelines/${name}/run`);
  return () =>
    until(`the run of ${name} ends`, async () => {
      const { over, last_run } = await ask("GET", `/pipelines/${name}/status?wait=30s&run_request=${run_request}`);
      return over && last_run;
    });
}

async function reconcile(name) {
  const { id } = await ask("POST", `/pipelines/${name}/reconcile`);
  return until(`${name} is compared`, async () => {
    const found = await ask("GET", `/pipelines/${name}/reconciles/${id}`);
    return found.finished_at !== null && found;
  });
}

function say(text) {
  console.log(text);
}

function sayRun({ pipeline_name, status, rows_read, rows_written, rows_unchanged, batches, error }) {
  say(
    `  ${pipeline_name.padEnd(21)} ${status.padEnd(8)} ${rows_read} read, ${rows_written} written, ${rows_unchanged} unchanged, ${batches} batches`,
  );
  if (status === "FAILED") throw new Error(`${pipeline_name} failed: ${error}`);
}

async function fillMarts() {
  const { items } = await ask("GET", "/pipelines?limit=200");
  const marts = MARTS.filter((mart) => items.some(({ name }) => name === mart));
  say(`Running the ${marts.length} pipelines of the demo:`);
  const runs = await Promise.all(marts.map(run));
  for (const ended of runs) sayRun(await ended());
  say("Comparing each target with its source:");
  for (const mart of marts) {
    const { status, report, error } = await reconcile(mart);
    if (status !== "MATCH") throw new Error(`${mart}: ${status} ${error ?? ""}`);
    say(
      `  ${mart.padEnd(21)} ${status}    ${report.source.rows} rows in the source, ${report.target.rows} in the target`,
    );
  }
}

async function takeOneThroughItsLife() {
  const path = `/pipelines/${RATING_LOG.name}`;
  const { items } = await ask("GET", `/pipelines?name=${RATING_LOG.name}`);
  if (items.length > 0) await ask("DELETE", path);
  const lastRun = async () => (await ask("GET", `${path}/runs?kind=load&limit=1`)).items[0];
  const working = (since) => until("batches are written", async () => (await lastRun())?.batches > since);

  const { valid, problems } = await ask("POST", "/validate", RATING_LOG);
  if (!valid) throw new Error(`Not valid: ${JSON.stringify(problems)}`);
  await ask("POST", "/pipelines", RATING_LOG);
  say(`Created ${RATING_LOG.name}, ${RATING_LOG.batch_size} rows in a batch. Running it, and pausing it half way:`);
  await run(RATING_LOG.name);
  await working(5);
  await ask("POST", `${path}/pause`);
  await until("it is paused", async () => (await ask("GET", path)).status === "PAUSED");
  sayRun(await lastRun());

  say("Resuming; it continues after its last batch. Meanwhile its batches become larger (reload-config):");
  const ended = await run(RATING_LOG.name);
  await until("it runs again", async () => (await lastRun()).status === "RUNNING");
  const { config_version } = await ask("PATCH", path, { batch_size: 5000 });
  await ask("POST", `${path}/reload-config`);
  const resumed = await ended();
  sayRun(resumed);
  if (resumed.applied_version !== config_version) throw new Error("The run did not pick up the new batch size.");

  say("Running it once more; nothing has changed, so nothing is written:");
  sayRun(await (await run(RATING_LOG.name))());
  const { status, report } = await reconcile(RATING_LOG.name);
  say(`  ${status}: ${report.source.rows} rows in the source, ${report.target.rows} in the target.`);
  if (status !== "MATCH") process.exitCode = 1;
  await ask("DELETE", path);
  say(`Deleted ${RATING_LOG.name}; its table stays until somebody drops it.`);
}

await until(`${API} is ready`, () =>
  fetch(`${API}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  ),
);
const logOut = await logIn();
try {
  await fillMarts();
  await takeOneThroughItsLife();
  const { items } = await ask("GET", "/runners");
  say(`Runners alive: ${items.filter(({ alive }) => alive).length}.`);
} finally {
  await logOut();
}
