import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";
import { hasPython } from "../tasks/task-folder.ts";

/** The whole product as a user meets it: real processes, a fresh folder, real HTTP. */

/** What the demo brings to this machine, in the order of the API. */
const DEMO = ["film_dim_full", "film_rating_agg_full", "film_shelf_full", "genre_dim_full"];
if (hasPython) DEMO.push("viewer_segments_full");
else console.warn("Not tested: the demo's pipeline with a Python task, because there is no Python.");

let folder: string;
const started: VitrinaProcess[] = [];

async function makeFolder(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), "vitrina-e2e-"));
}
async function stopAndRemove(): Promise<void> {
  await Promise.all(started.splice(0).map((vitrina) => vitrina.stop()));
  await rm(folder, { recursive: true, force: true });
}

function start(env: Record<string, string> = {}): VitrinaProcess {
  const vitrina = spawnVitrina(["start"], { cwd: folder, env: { API_PORT: "0", LEASE_SECONDS: "3", ...env } });
  started.push(vitrina);
  return vitrina;
}

async function ready(vitrina: VitrinaProcess): Promise<string> {
  await vitrina.untilPrinted("Vitrina is ready");
  await vitrina.untilPrinted("Ctrl-C");
  return /API {8}(http:\/\/[^/]+)/.exec(vitrina.output())?.[1] as string;
}

async function connectToDatabase(): Promise<pg.Client> {
  const command = spawnVitrina(["db-url"], { cwd: folder });
  expect(await command.exited).toBe(0);
  const client = new pg.Client({ connectionString: command.output().trim() });
  await client.connect();
  return client;
}

// biome-ignore lint/suspicious/noExplicitAny: the answers are what is under test
const get = async (url: string): Promise<any> => (await fetch(url)).json();

interface PipelineAnswer {
  readonly name: string;
  readonly status: string;
  readonly source_query: string;
  readonly tasks: readonly { readonly body: string }[];
  readonly target_table: string;
}

/** What it reads; code tasks come behind it. */
const readerOf = ({ source_query, tasks }: PipelineAnswer): string => tasks[0]?.body ?? source_query;

async function requireMartsToEqualTheirQueries(api: string, database: pg.Client): Promise<PipelineAnswer[]> {
  const { items } = (await get(`${api}/api/v1/pipelines`)) as { items: PipelineAnswer[] };
  for (const { source_query, target_table, tasks } of items) {
    if (tasks.length > 0) continue;
    const { fields } = await database.query(`SELECT * FROM (${source_query}) q LIMIT 0`);
    const target = `SELECT ${fields.map(({ name }) => name).join(", ")} FROM ${target_table}`;
    const { rows } = await database.query(`
      SELECT (SELECT count(*) FROM (${source_query}) q)::int AS expected,
             (SELECT count(*) FROM ((${target}) EXCEPT (${source_query})) x)::int AS wrong,
             (SELECT count(*) FROM ((${source_query}) EXCEPT (${target})) x)::int AS missing`);
    expect(rows[0]).toMatchObject({ wrong: 0, missing: 0 });
    expect(rows[0].expected).toBeGreaterThan(0);
  }
  return items;
}

describe("npm start", () => {
  // Each first start takes seconds: these share a folder, and what the first of them leaves running.
  beforeAll(makeFolder);
  afterAll(stopAndRemove);
  let api: string;

  it("R1.4 builds the marts, two of them through code tasks, serves, stops cleanly, and finds its data again", async () => {
    const first = start();
    api = await ready(first);
    const database = await connectToDatabase();
    const pipelines = await requireMartsToEqualTheirQueries(api, database);
    expect(pipelines.map(({ name, status }) => [name, status])).toEqual(DEMO.map((name) => [name, "IDLE"]));
    for (const pipeline of pipelines) {
      const { last_run: run } = await get(`${api}/api/v1/pipelines/${pipeline.name}/status`);
      const { rows } = await database.query(`SELECT count(*)::int AS n FROM (${readerOf(pipeline)}) q`);
      expect(run).toMatchObject({ status: "SUCCESS", rows_read: rows[0].n, rows_written: rows[0].n });
    }
    const { rows: titles } = await database.query(
      "SELECT count(*)::int AS n FROM analytics.film_shelf WHERE title = 'The ' || title_sort",
    );
    expect(titles[0].n, "the task in TypeScript").toBeGreaterThan(0);
    if (hasPython) {
      expect(first.output()).not.toContain("The demo comes without");
      const { rows: segments } = await database.query(
        "SELECT segment, count(*)::int AS n FROM analytics.viewer_segments WHERE rating_count < 5 GROUP BY 1",
      );
      expect(segments, "the task in Python").toEqual([{ segment: "newcomer", n: expect.any(Number) }]);
    }
    const { rows: read } = await database.query("SELECT sum(rows_read)::int AS n FROM etl.etl_runs");
    expect((await scrape(api)).value("vitrina_rows_read_total"), "R9 the metrics of the runner").toBe(read[0].n);
    await database.end();
    expect(await first.stop()).toBe(0);

    const second = start();
    api = await ready(second);
    expect(second.output()).not.toContain("for the first time");
    expect(((await get(`${api}/pipelines`)) as { items: unknown[] }).items).toHaveLength(DEMO.length);
  });

  it("R1.3 builds a mart that is only configuration, posted through the API", async () => {
    const config = {
      name: "people_by_role",
      source_query: `SELECT p.id AS person_id, pf.role, count(*) AS films, max(f.rating) AS best_rating
        FROM content.person p JOIN content.person_film_work pf ON pf.person_id = p.id
        JOIN content.film_work f ON f.id = pf.film_work_id GROUP BY p.id, pf.role`,
      target_table: "analytics.people_by_role",
      target_key: ["person_id", "role"],
      create_target: true,
    };
    const post = (path: string, body?: object) =>
      fetch(`${api}${path}`, {
        method: "POST",
        ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
      });
    expect((await post("/api/v1/pipelines", config)).status).toBe(201);
    expect((await post("/api/v1/pipelines/people_by_role/run")).status).toBe(200);
    await until("the mart is built", async () => {
      const { status, last_run } = await get(`${api}/api/v1/pipelines/people_by_role/status`);
      return status === "IDLE" && last_run?.status === "SUCCESS";
    });
    const database = await connectToDatabase();
    await requireMartsToEqualTheirQueries(api, database);
    await database.end();
  });

  it("lets the reader read a schema that was made meanwhile by vitrina migrate, which says so", async () => {
    const database = await connectToDatabase();
    await database.query("CREATE SCHEMA later; CREATE TABLE later.film (id integer)");
    const command = spawnVitrina(["migrate"], { cwd: folder, env: { SOURCE_SCHEMAS: "content,later,never" } });
    expect(await command.exited, command.output()).toBe(0);
    expect(command.output()).toBe(
      "The schema is up to date.\nvitrina_reader may read every table of content, later.\nNot there yet: never. Run this again once they are.\n",
    );
    const { rows } = await database.query(
      "SELECT has_table_privilege('vitrina_reader', 'later.film', 'SELECT') AS may",
    );
    expect(rows).toEqual([{ may: true }]);
    await database.query("DROP SCHEMA later CASCADE");
    await database.end();
    // The runner that is working already keeps its password.
    expect((await fetch(`${api}/health/ready`)).status).toBe(200);
  });

  it("refuses a second start on the same folder, and leaves the first one alone", async () => {
    const second = start();
    expect(await second.exited).toBe(1);
    expect(second.output()).toMatch(/^vitrina: .*\n {2}.+\.\n$/m);
    expect((await fetch(`${api}/health/ready`)).status).toBe(200);
  });
});

describe("npm start in a folder of its own", () => {
  beforeEach(makeFolder);
  afterEach(stopAndRemove);

  it("recovers from a kill: no orphan stays, the data is there, and unfinished work goes on", async () => {
    const first = start();
    await first.untilPrinted("for the first time");
    first.signal("SIGKILL");
    expect(await first.exited).toBe("SIGKILL");
    const second = start();
    const api = await ready(second);
    await until("every pipeline is done", async () => {
      const { items } = (await get(`${api}/api/v1/pipelines`)) as { items: PipelineAnswer[] };
      return items.length === DEMO.length && items.every(({ status }) => status === "IDLE");
    });
    const database = await connectToDatabase();
    await requireMartsToEqualTheirQueries(api, database);
    await database.end();
    expect(await second.stop()).toBe(0);
  });

  it("ends by Ctrl-C in the middle of the start, too", async () => {
    const vitrina = start();
    await vitrina.untilPrinted("Starting PostgreSQL");
    vitrina.signal("SIGINT");
    expect(await vitrina.exited).toBe(0);
    const command = spawnVitrina(["db-url"], { cwd: folder });
    expect(await command.exited).toBe(1);
    expect(command.output()).toContain("npm start");
    const migrating = spawnVitrina(["migrate"], { cwd: folder });
    expect(await migrating.exited).toBe(1);
    expect(migrating.output()).toContain("set DATABASE_URL");
  });

  it("uses the PostgreSQL of DATABASE_URL instead of the embedded one, and does without Python", async () => {
    const database = await createTestDatabase(inject("postgresUrl"), { empty: true });
    const vitrina = start({ DATABASE_URL: database.url, PYTHON: "there-is-no-such-python" });
    const api = await ready(vitrina);
    expect(vitrina.output()).not.toContain("Starting PostgreSQL");
    const lack = "The demo comes without viewer_segments_full: there is no Python 3.10 or newer for its task";
    expect(vitrina.output().split("\n")).toContainEqual(expect.stringContaining(lack));
    const { items } = (await get(`${api}/api/v1/pipelines`)) as { items: PipelineAnswer[] };
    expect(items.map(({ name }) => name)).toEqual(DEMO.filter((name) => name !== "viewer_segments_full"));
    expect(await database.query("SELECT count(*)::int AS n FROM analytics.film_dim")).toEqual([{ n: 1000 }]);
    expect(await vitrina.stop()).toBe(0);
    await database.drop();
  });

  it("does not load the demo into a database whose schemas belong to somebody else", async () => {
    const database = await createTestDatabase(inject("postgresUrl"), { empty: true });
    await database.query("CREATE SCHEMA content; CREATE TABLE content.own (id int)");
    const vitrina = start({ DATABASE_URL: database.url });
    await ready(vitrina);
    expect(vitrina.output()).toContain("demo was not loaded");
    expect(await database.query("SELECT to_regclass('content.film_work') AS found")).toEqual([{ found: null }]);
    await vitrina.stop();
    await database.drop();
  });
});

describe("a start that cannot work says why in one sentence, and what to do", () => {
  beforeEach(makeFolder);
  afterEach(stopAndRemove);

  async function failure(env: Record<string, string>): Promise<string> {
    const vitrina = start(env);
    expect(await vitrina.exited).toBe(1);
    expect(vitrina.output()).not.toMatch(/\n\s+at /);
    return vitrina.output();
  }

  it("a taken port", async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
    const { port } = blocker.address() as { port: number };
    expect(await failure({ API_PORT: String(port) })).toMatch(/127\.0\.0\.1:\d+[\s\S]*API_PORT/);
    blocker.close();
  });

  it("a folder that cannot be written", async () => {
    await writeFile(join(folder, "file"), "");
    expect(await failure({ VITRINA_DATA_DIR: "file/data" })).toContain("VITRINA_DATA_DIR");
  });

  it("a database that cannot be reached", async () => {
    const output = await failure({ DATABASE_URL: "postgres://u:canary-password@127.0.0.1:1/db" });
    expect(output).toMatch(/Could not connect to the database/);
    expect(output).not.toContain("canary-password");
  });

  it("a wrong password", async () => {
    const url = new URL(inject("postgresUrl"));
    url.password = "canary-password";
    const output = await failure({ DATABASE_URL: url.href });
    expect(output).toMatch(/password authentication failed/);
    expect(output).not.toContain("canary-password");
  });

  it("several settings at once", async () => {
    expect(await failure({ API_PORT: "x", LEASE_SECONDS: "0" })).toMatch(/API_PORT[\s\S]*LEASE_SECONDS/);
  });
});
