import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

/** Every line that R9 asks for, as real processes print it. */

const ROWS = 300;

let bench: Bench;
let folder: string;
let api: VitrinaProcess;
let runner: VitrinaProcess;
let url: string;

beforeAll(async () => {
  bench = await openBench();
  folder = await mkdtemp(join(tmpdir(), "vitrina-log-"));
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, ${ROWS}) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id); ANALYZE content.film`,
  );
  const env = {
    ...roleEnvironment(bench.database.urls),
    SOURCE_DEAD_URL: "postgres://nobody:nothing@127.0.0.1:1/nothing",
    API_PORT: "0",
    LEASE_SECONDS: "3",
    RUNNER_POLL_SECONDS: "1",
    RETRY_ATTEMPTS: "2",
    RETRY_BACKOFF_SECONDS: "0",
  };
  api = spawnVitrina(["api"], { cwd: folder, env });
  runner = spawnVitrina(["runner"], { cwd: folder, env });
  await api.untilPrinted("api started");
  await runner.untilPrinted("runner started");
  url = linesOf(api).find(({ msg }) => msg === "api started")?.["url"] as string;
});
afterAll(async () => {
  await Promise.all([api?.stop(), runner?.stop()]);
  await bench?.close();
  await rm(folder, { recursive: true, force: true });
});

type Line = Record<string, unknown>;

/** Every line is one JSON object; the last may not be whole yet. */
function linesOf({ output }: VitrinaProcess): Line[] {
  const text = output();
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

function find(process: VitrinaProcess, { id }: Pipeline, message: string): Promise<Line> {
  return until(`it prints "${message}"`, () =>
    linesOf(process).find(({ msg, pipeline_id }) => msg === message && pipeline_id === id),
  );
}

async function ask(pipeline: Pipeline, what: "run" | "pause"): Promise<void> {
  expect((await fetch(`${url}/pipelines/${pipeline.name}/${what}`, { method: "POST" })).status).toBe(200);
}

const FILMS = { source_query: "SELECT id, title FROM content.film", target_key: ["id"] };
const MS = expect.any(Number);

describe("R9 the log", () => {
  it("R9 is one JSON object per line, with time and level", async () => {
    for (const line of [...linesOf(api), ...linesOf(runner)]) {
      expect(line).toMatchObject({ level: expect.stringMatching(/^(info|warn|error)$/), msg: expect.any(String) });
      expect(line["time"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
  });

  it("R9 tells of run start, batch end, run end and each change of status, with names, ids, rows and timings", async () => {
    const pipeline = await bench.create({ ...FILMS, batch_size: 200 });
    await ask(pipeline, "run");
    const run = await bench.ended(pipeline);
    const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id, run_id: run.id };

    expect(await find(api, pipeline, "run requested")).toMatchObject({
      pipeline: pipeline.name,
      status_before: "IDLE",
      status: "RUN_REQUESTED",
      actor: "local",
      request_id: expect.any(String),
    });
    expect(await find(runner, pipeline, "run started")).toMatchObject({
      ...ids,
      status: "RUNNING",
      trigger: "api",
      attempt: 1,
      epoch: 1,
      runner_id: run.runner_id,
      config_version: 1,
    });
    expect(await find(runner, pipeline, "load opened")).toMatchObject({ ...ids, data_path: run.data_path });
    expect(await find(runner, pipeline, "run ended")).toMatchObject({
      ...ids,
      outcome: "succeeded",
      status: "IDLE",
      batches: 2,
      rows_read: ROWS,
      rows_written: ROWS,
      duration_ms: MS,
    });
    const batches = linesOf(runner).filter(({ msg, run_id }) => msg === "batch committed" && run_id === run.id);
    const timings = { read_ms: MS, transform_ms: MS, write_ms: MS, duration_ms: MS };
    expect(batches).toMatchObject([
      { ...ids, batch: 1, rows_read: 200, rows_written: 200, ...timings },
      { ...ids, batch: 2, rows_read: 100, rows_written: 100, ...timings },
    ]);
  });

  it("R9 tells of a pause, as it is asked for and as it is done", async () => {
    const pipeline = await bench.create({ ...FILMS, batch_size: 1 });
    await ask(pipeline, "run");
    await find(runner, pipeline, "batch committed");
    await ask(pipeline, "pause");
    await bench.ended(pipeline);
    expect(await find(api, pipeline, "pause requested")).toMatchObject({
      status_before: "RUNNING",
      status: "PAUSE_REQUESTED",
    });
    expect(await find(runner, pipeline, "run ended")).toMatchObject({ outcome: "paused", status: "PAUSED" });
  });

  it("R9 tells of a run that a schedule asks for", async () => {
    const pipeline = await bench.create({ ...FILMS, schedule_interval: "1h" });
    await until("it is planned", async () => {
      const due =
        "UPDATE etl.etl_pipelines SET next_run_at = clock_timestamp() WHERE id = $1 AND next_run_at IS NOT NULL";
      return (await bench.query(`${due} RETURNING id`, [pipeline.id])).length === 1;
    });
    expect(await find(runner, pipeline, "scheduled run requested")).toMatchObject({
      pipeline: pipeline.name,
      status: "RUN_REQUESTED",
      due: expect.any(String),
      next: expect.any(String),
    });
    expect(await find(runner, pipeline, "run started")).toMatchObject({ trigger: "schedule" });
    await bench.ended(pipeline);
  });

  it("R9 tells of errors of SQL", async () => {
    const pipeline = await bench.create({ ...FILMS, source_query: "SELECT id, titel FROM content.film" });
    await ask(pipeline, "run");
    const run = await bench.ended(pipeline);
    expect(await find(runner, pipeline, "run failed")).toMatchObject({
      level: "error",
      pipeline: pipeline.name,
      run_id: run.id,
      code: run.error_code,
      error: run.error,
    });
    expect(run.error).toContain("titel");
    expect(await find(runner, pipeline, "run ended")).toMatchObject({ outcome: "failed", status: "FAILED" });
  });

  it("R9 tells of errors of connections, with each attempt", async () => {
    const pipeline = await bench.create({ ...FILMS, source_connection: "dead", retry_for_seconds: 0 });
    await ask(pipeline, "run");
    const last = await bench.ended(pipeline);
    const first = await find(runner, pipeline, "attempt failed; trying again");
    expect(first).toMatchObject({
      level: "warn",
      pipeline: pipeline.name,
      attempt: 1,
      next_run_id: last.id,
      code: "DATABASE_UNAVAILABLE",
      error: expect.stringContaining("ECONNREFUSED"),
    });
    expect(first["run_id"]).not.toBe(last.id);
    expect(await find(runner, pipeline, "run failed")).toMatchObject({ run_id: last.id, code: "DATABASE_UNAVAILABLE" });
  });

  it("R9 is pretty on a terminal", () => {
    const [terminal, log] = ["../support/on-terminal.py", "../../dist/observability/log.js"].map((path) =>
      fileURLToPath(new URL(path, import.meta.url)),
    ) as [string, string];
    const program = `import(${JSON.stringify(log)}).then(({ createLog }) =>
      createLog({ level: "info" }).info({ rows: 3, url: "postgres://ann:s3cret@db/cinema" }, "batch committed"))`;
    const seen = execFileSync("python3", [terminal, "", process.execPath, "-e", program]).toString();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what makes it pretty.
    expect(seen).toMatch(/\x1b\[32mINFO\x1b\[39m.*batch committed/);
    expect(seen).toContain("postgres://***@db/cinema");
    expect(seen).not.toContain('{"level"');
  });
});
