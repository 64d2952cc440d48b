import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newPipelineSchema } from "../../src/domain/pipeline.ts";
import { bearer, JSON_TYPE } from "../support/api-client.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

/** Every secret has a value found nowhere else; trouble of every kind is provoked; then none of them may be found. */

const canary = (): string => `canary${randomBytes(8).toString("hex")}`;
const PASSWORD_OF_NOBODY = canary();
const WRONG_PASSWORD = canary();
const ROW_VALUE = canary();
const ROLE_SECRET = canary();

let bench: Bench;
let folder: string;
let key: string;
let api: VitrinaProcess;
let runner: VitrinaProcess;
let url: string;
const answers: string[] = [];

beforeAll(async () => {
  bench = await openBench();
  folder = await mkdtemp(join(tmpdir(), "vitrina-secrets-"));
  const wrong = new URL(bench.database.urls.reader);
  wrong.password = WRONG_PASSWORD;
  const env = {
    ...roleEnvironment(bench.database.urls),
    SOURCE_DEAD_URL: `postgres://nobody:${PASSWORD_OF_NOBODY}@127.0.0.1:1/nothing`,
    SOURCE_WRONG_URL: wrong.href,
    VITRINA_ROLE_SECRET: ROLE_SECRET,
    API_AUTH: "required",
    API_PORT: "0",
    RETRY_ATTEMPTS: "1",
    LOG_LEVEL: "debug",
  };
  ({ key } = await bench.store.keys.create({ name: "test", role: "admin" }, "test"));
  api = spawnVitrina(["api"], { cwd: folder, env });
  runner = spawnVitrina(["runner"], { cwd: folder, env });
  await api.untilPrinted("api started");
  url = /"url":"([^"]+)"/.exec(api.output())?.[1] as string;
  await bench.query(
    `CREATE TABLE content.people (id int, email text);
     INSERT INTO content.people VALUES (1, '${ROW_VALUE}'), (2, '${ROW_VALUE}');
     CREATE TABLE analytics.unique_mail (id int PRIMARY KEY, email text UNIQUE);
     CREATE TABLE analytics.short_mail (id int PRIMARY KEY, email varchar(3));
     CREATE TABLE analytics.checked_mail (id int PRIMARY KEY, email text CHECK (email LIKE '%@%'));
     CREATE TABLE analytics.number_mail (id int PRIMARY KEY, email int);
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA analytics TO vitrina_writer`,
  );
});
afterAll(async () => {
  await Promise.all([api.stop(), runner.stop()]);
  await bench.close();
  await rm(folder, { recursive: true });
});

async function ask(method: string, path: string, body?: string, token = key): Promise<number> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { ...bearer(token), ...(body !== undefined && JSON_TYPE) },
    ...(body !== undefined && { body }),
  });
  answers.push(await response.text());
  return response.status;
}

/** Creates it by the API, runs it, and returns the code of its error. */
async function failing(name: string, more: object): Promise<unknown> {
  const config = {
    name,
    target_table: `analytics.${name}`,
    target_key: ["id"],
    max_rejects: 0,
    retry_for_seconds: 0,
    ...more,
  };
  const answered = await ask("POST", "/pipelines", JSON.stringify(config));
  expect([201, 422]).toContain(answered);
  // What the API can tell to be wrong beforehand, a runner may still meet when it became so later.
  if (answered === 422) await bench.store.pipelines.create(newPipelineSchema.parse(config), "test");
  expect(await ask("POST", `/pipelines/${name}/run`)).toBe(200);
  await until(`${name} fails`, async () => (await bench.store.pipelines.get(name)).status === "FAILED");
  for (const path of ["", "/status", "/runs", "/state"])
    expect(await ask("GET", `/pipelines/${name}${path}`)).toBe(200);
  const [run] = (await bench.store.runs.list((await bench.store.pipelines.get(name)).id, { limit: 1 })).items;
  return run?.error_code;
}

const COPY = "SELECT id, email FROM content.people";

describe("R8.4 no secret is found", () => {
  it("in logs, answers and the meta-store, after trouble of every kind", async () => {
    const codes = [
      await failing("unique_mail", { source_query: COPY }),
      await failing("short_mail", { source_query: COPY }),
      await failing("checked_mail", { source_query: COPY }),
      await failing("number_mail", { source_query: COPY }),
      await failing("cast", { source_query: "SELECT id, email::int AS n FROM content.people", create_target: true }),
      await failing("dead", { source_query: COPY, source_connection: "dead", create_target: true }),
      await failing("wrong", { source_query: COPY, source_connection: "wrong", create_target: true }),
    ];
    expect(codes.every((code) => typeof code === "string")).toBe(true);
    expect(codes).toContain("TOO_MANY_REJECTS");
    expect(codes).toContain("DATABASE_UNAVAILABLE");
    expect(codes).toContain("PERMISSION_DENIED");

    const guess = `${key.slice(0, -4)}AAAA`;
    expect(await ask("GET", "/pipelines", undefined, guess)).toBe(401);
    await fetch(`${url}/pipelines?token=${key}`, { headers: bearer(key) });
    await fetch(`${url}/pipelines/${key}`, { method: "DELETE", headers: bearer(key) });
    // Trouble inside, with the database's own words in the log.
    await bench.query("REVOKE SELECT ON etl.etl_pipelines FROM vitrina_meta");
    expect(await ask("GET", "/pipelines")).toBe(500);
    await bench.query("GRANT SELECT ON etl.etl_pipelines TO vitrina_meta");
    await until("the denied request is in the audit log", async () => {
      const rows = await bench.query(
        "SELECT FROM etl.audit_log WHERE action = 'deletePipeline' AND outcome = 'refused'",
      );
      return rows.length > 0;
    });

    const { meta, reader, writer } = bench.database.urls;
    const secrets = {
      PASSWORD_OF_NOBODY,
      WRONG_PASSWORD,
      ROW_VALUE,
      ROLE_SECRET,
      "the key": key.slice(-43),
      "the guessed key": guess.slice(-43),
      ...Object.fromEntries([meta, reader, writer].map((role) => [new URL(role).username, new URL(role).password])),
    };
    const places = {
      "the API's log": api.output(),
      "the runner's log": runner.output(),
      answers: answers.join("\n"),
      "the meta-store": await textOfMetaStore(),
    };
    expect(places["the API's log"]).toContain("request failed");
    expect(places["the runner's log"]).toContain("run failed");
    expect(places["the meta-store"]).toContain("TOO_MANY_REJECTS");
    const found = Object.entries(places).flatMap(([place, text]) =>
      Object.entries(secrets).flatMap(([name, secret]) => (text.includes(secret) ? [`${name} in ${place}`] : [])),
    );
    expect(found).toEqual([]);
  });
});

/** Everything but the rejected rows, which are kept so that somebody can look at them. */
async function textOfMetaStore(): Promise<string> {
  const tables = await bench.query(
    `SELECT format('SELECT string_agg(to_jsonb(t)::text, E''\\n'') AS text FROM etl.%I t', relname) AS sql
       FROM pg_class WHERE relnamespace = 'etl'::regnamespace AND relkind = 'r' AND relname <> 'etl_rejects'`,
  );
  const texts = await Promise.all(tables.map(({ sql }) => bench.query(sql as string)));
  return texts.map(([row]) => row?.["text"] ?? "").join("\n");
}
