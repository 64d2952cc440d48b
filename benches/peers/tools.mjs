// The tools, each with the settings that it comes with. A step is a command that a user would type, from its start to its end.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { createPipeline, dropPipeline, startRunner } from "../support/runner.mjs";
import { startApi } from "../support/server.mjs";
import { COLUMNS, DEFINITION, TABLE } from "./work.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
const COMMAND = join(root, "bin", "vitrina.mjs");
const VENV = join(root, ".cache", "peers");
const NAMES = COLUMNS.join(", ");
/** The newest version of Sling of which the registry has the program itself. */
const PACKAGES = ["dlt[postgres]==1.31.0", "sqlalchemy==2.0.44", "sling-linux-amd64==1.4.11"];

/** Throws with what it printed when it fails. */
function command(program, args, env = {}) {
  return new Promise((resolve, reject) => {
    const own = { PATH: process.env.PATH, HOME: process.env.HOME, ...env };
    const child = spawn(program, args, { env: own, stdio: ["ignore", "pipe", "pipe"] });
    const output = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(chunk));
    child.once("error", reject);
    child.once("close", (code) => {
      const text = stripVTControlCharacters(Buffer.concat(output).toString());
      if (code === 0) resolve(text);
      else reject(new Error(`${program} ended with ${code}: ${text.trim().slice(-600)}`));
    });
  });
}

function versionOf(program, args, pattern) {
  const { stdout, error } = spawnSync(program, args, { encoding: "utf8" });
  return error === undefined ? (pattern.exec(stdout)?.[1] ?? "unknown") : undefined;
}

/** What several tools are installed from. */
async function installPackages() {
  if (existsSync(join(VENV, "installed"))) return;
  await rm(VENV, { recursive: true, force: true });
  await mkdir(dirname(VENV), { recursive: true });
  await command("python3", ["-m", "venv", VENV]);
  const pip = ["install", "--quiet", "--disable-pip-version-check", ...PACKAGES];
  await command(join(VENV, "bin", "pip"), pip);
  await writeFile(join(VENV, "installed"), "");
}

const steps = {
  "first load": "full",
  "second load": "full",
  "1 % changed": "incremental",
};

/** Each opens with a version and the steps it can do; a tool that is not to be had throws. */
export const TOOLS = [
  { name: "psql COPY pipe", open: openPsql },
  { name: "Vitrina", open: openVitrina },
  { name: "Sling", open: openSling },
  { name: "dlt", open: openDlt },
  { name: "pgloader", open: openPgloader },
];

/** By hand: what PostgreSQL itself can do, for somebody who knows the table. */
async function openPsql({ sourceUrl, targetUrl }) {
  const version = versionOf("psql", ["--version"], /(\d[\d.]*)/);
  if (version === undefined) throw new Error("there is no psql here");
  const target = "peers.by_psql";
  const pipe = (select, ...statements) =>
    command("sh", [
      "-ec",
      `psql -X -q -v ON_ERROR_STOP=1 "$0" -c "COPY (${select}) TO STDOUT (FORMAT binary)" | psql -X -q -v ON_ERROR_STOP=1 "$1" ${statements
        .map((statement) => `-c "${statement}"`)
        .join(" ")}`,
      sourceUrl,
      targetUrl,
    ]);
  const whole = () =>
    pipe(
      `SELECT ${NAMES} FROM ${TABLE}`,
      `DROP TABLE IF EXISTS ${target}`,
      `CREATE TABLE ${target} ${DEFINITION}`,
      `COPY ${target} FROM STDIN (FORMAT binary)`,
    );
  const changed = async ({ client }) => {
    const { rows } = await client.query(`SELECT max(modified)::text AS at FROM ${target}`);
    await pipe(
      `SELECT ${NAMES} FROM ${TABLE} WHERE modified > '${rows[0].at}'`,
      `CREATE TEMP TABLE stage (LIKE ${target})`,
      "COPY stage FROM STDIN (FORMAT binary)",
      `INSERT INTO ${target} SELECT * FROM stage ON CONFLICT (id) DO UPDATE SET ${COLUMNS.filter(
        (name) => name !== "id",
      )
        .map((name) => `${name} = excluded.${name}`)
        .join(", ")}`,
    );
  };
  return {
    version,
    steps: { "first load": whole, "second load": whole, "1 % changed": changed },
    targetOf: () => target,
    close: async () => undefined,
  };
}

async function openVitrina({ world, sourceName }) {
  const runner = await startRunner({
    ...world,
    runnerEnvironment: { ...world.runnerEnvironment, TASKS_DIR: join(here, "tasks") },
  });
  const api = await startApi(world);
  const query = `SELECT ${NAMES} FROM ${TABLE}`;
  const common = { source_connection: sourceName };
  const pipelines = {
    full: await createPipeline(world, { ...common, source_query: query }),
    incremental: await createPipeline(world, {
      ...common,
      source_query: query,
      mode: "incremental",
      incremental_key: "modified",
      incremental_id_key: "id",
    }),
    code: await createPipeline(world, {
      ...common,
      tasks: [
        { order_index: 1, task_type: "SQL", body: query },
        { order_index: 2, task_type: "TYPESCRIPT", body: "upper_name" },
      ],
    }),
  };
  const run = ({ name }) =>
    command(process.execPath, [COMMAND, "run", name, "--wait"], { VITRINA_API_URL: `http://127.0.0.1:${api.port}` });
  const pipelineOf = (step) => pipelines[step === "load through code" ? "code" : steps[step]];
  const stepFor = (step) => () => run(pipelineOf(step));
  return {
    version: versionOf(process.execPath, [COMMAND, "--version"], /(.+)/),
    steps: Object.fromEntries([...Object.keys(steps), "load through code"].map((step) => [step, stepFor(step)])),
    targetOf: (step) => pipelineOf(step).target_table,
    /** So that the next first load is one. */
    async forget({ client }) {
      for (const { target_table, id } of Object.values(pipelines)) {
        await client.query(`DROP TABLE IF EXISTS ${target_table}`);
        await world.store.state.reset(id);
      }
    },
    prepareChanges: () => run(pipelines.incremental),
    async close() {
      await Promise.all([api.stop(), runner.stop()]);
      for (const pipeline of Object.values(pipelines)) await dropPipeline(world, pipeline);
    },
  };
}

async function openSling({ sourceUrl, targetUrl }) {
  await installPackages();
  const found = spawnSync("find", [VENV, "-name", "sling-linux-amd64", "-type", "f"], { encoding: "utf8" });
  const program = found.stdout.trim().split("\n")[0];
  const home = await mkdtemp(join(tmpdir(), "vitrina-bench-sling-"));
  const plain = (url) => `${url}${url.includes("?") ? "&" : "?"}sslmode=disable`;
  const env = { SOURCE: plain(sourceUrl), TARGET: plain(targetUrl), HOME: home, SLING_DISABLE_TELEMETRY: "true" };
  const target = { full: "peers.by_sling", incremental: "peers.by_sling_changes" };
  const run = (mode, object, ...more) =>
    command(
      program,
      [
        "run",
        "--src-conn",
        "SOURCE",
        "--src-stream",
        TABLE,
        "--tgt-conn",
        "TARGET",
        "--tgt-object",
        object,
        "--mode",
        mode,
        ...more,
      ],
      env,
    );
  const whole = () => run("full-refresh", target.full);
  const changed = () => run("incremental", target.incremental, "--primary-key", "id", "--update-key", "modified");
  return {
    version: versionOf(program, ["--version"], /Version: (.+)/),
    steps: { "first load": whole, "second load": whole, "1 % changed": changed },
    targetOf: (step) => target[steps[step]],
    prepareChanges: changed,
    close: () => rm(home, { recursive: true, force: true }),
  };
}

async function openDlt({ sourceUrl, targetUrl }) {
  await installPackages();
  const folder = await mkdtemp(join(tmpdir(), "vitrina-bench-dlt-"));
  const run = (kind, dataset) =>
    command(join(VENV, "bin", "python"), [join(here, "load_by_dlt.py"), kind], {
      HOME: folder,
      SOURCE_URL: sourceUrl.replace(/^\w+:/, "postgresql+psycopg2:"),
      TARGET_URL: targetUrl.replace(/^\w+:/, "postgresql:"),
      PIPELINE_NAME: dataset,
      PIPELINES_DIR: folder,
      DATASET: dataset,
      RUNTIME__DLTHUB_TELEMETRY: "false",
    });
  const whole = () => run("replace", "by_dlt");
  const changed = () => run("merge", "by_dlt_changes");
  const datasets = { "1 % changed": "by_dlt_changes", "load through code": "by_dlt_code" };
  return {
    version: versionOf(join(VENV, "bin", "python"), ["-c", "import dlt; print(dlt.__version__)"], /(.+)/),
    steps: {
      "first load": whole,
      "second load": whole,
      "1 % changed": changed,
      "load through code": () => run("replace-in-code", "by_dlt_code"),
    },
    targetOf: (step) => `${datasets[step] ?? "by_dlt"}.film`,
    prepareChanges: changed,
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

async function openPgloader({ sourceUrl, targetUrl }) {
  const version = versionOf("pgloader", ["--version"], /"(.+)"/);
  if (version === undefined) throw new Error("there is no pgloader here");
  const folder = await mkdtemp(join(tmpdir(), "vitrina-bench-pgloader-"));
  const file = join(folder, "film.load");
  await writeFile(
    file,
    `LOAD DATABASE FROM ${sourceUrl} INTO ${targetUrl}
     WITH include drop, create tables, create indexes
     INCLUDING ONLY TABLE NAMES MATCHING 'film' IN SCHEMA 'content'
     ALTER SCHEMA 'content' RENAME TO 'by_pgloader';`,
  );
  const whole = () => command("pgloader", [file], { TMPDIR: folder });
  return {
    version,
    steps: { "first load": whole, "second load": whole },
    targetOf: () => "by_pgloader.film",
    close: () => rm(folder, { recursive: true, force: true }),
  };
}
