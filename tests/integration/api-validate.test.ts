import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { EVERY_ERROR } from "../support/every-error.ts";
import { WITH_TASKS } from "../support/pipelines.ts";
import { openTryOut, type TryOut } from "../support/try-out.ts";

interface Problem {
  code: string;
  severity: "error" | "warning";
  pointer: string;
  message: string;
  hint: string;
  line?: number;
  column?: number;
}

let bench: TryOut;
beforeAll(async () => {
  bench = await openTryOut({ SOURCE_AWAY_URL: "postgres://nobody:secret@127.0.0.1:1/none", ...WITH_TASKS });
  await bench.startRunner();
});
afterAll(() => bench.close());

/** A name that no other test uses. */
const fresh = (): string => `t_${randomUUID().slice(0, 8)}`;

let table: string;
beforeEach(async () => {
  table = `content.${fresh()}`;
  await bench.query(`CREATE TABLE ${table} (id bigint PRIMARY KEY, title text, rating numeric(3,1), modified timestamptz);
    INSERT INTO ${table} SELECT n, 'film ' || n, 7.5, '2020-01-01'::timestamptz + n * interval '1 second'
      FROM generate_series(1, 5000) n;
    ANALYZE ${table}`);
});

const film = (more: object = {}): Record<string, unknown> => ({
  name: fresh(),
  source_query: `SELECT id, title, rating, modified FROM ${table}`,
  target_table: `analytics.${fresh()}`,
  target_key: ["id"],
  create_target: true,
  ...more,
});

async function ask(path: string, body?: object) {
  const answer = await bench.post(path, body);
  expect(answer.status, answer.text).toBe(200);
  for (const { code, pointer, message, hint } of answer.body.problems as Problem[]) {
    expect(EVERY_ERROR.map(([known]) => known)).toContain(code);
    expect(pointer).toMatch(/^(\/[a-z_0-9]+)*$/);
    expect(message).toMatch(/^\S.*\.$/s);
    expect(hint).toMatch(/^\S.*\.$/s);
  }
  return answer.body;
}

const validate = (config: object) => ask("/api/v1/validate", config);

/** Code, severity and place of each problem. */
const told = ({ problems }: { problems: Problem[] }): string[] =>
  problems.map(({ code, severity, pointer }) => `${severity} ${code} ${pointer}`).sort();

const asString = (value: unknown): string => value as string;

describe("a configuration that is right", () => {
  it("R3.4 is valid, and comes with its columns, its target, and how it will be read and written", async () => {
    const config = film();
    expect(await validate(config)).toEqual({
      valid: true,
      problems: [],
      columns: [
        { name: "id", type: "bigint" },
        { name: "title", type: "text" },
        { name: "rating", type: "numeric(3,1)" },
        { name: "modified", type: "timestamp with time zone" },
      ],
      target: {
        table: config["target_table"],
        exists: false,
        key: ["id"],
        will_create: true,
        missing_columns: [],
        extra_columns: [],
        note: null,
      },
      reading: {
        strategy: "keyset",
        explanation: expect.stringMatching(/\.$/),
        data_path: "push-down",
        order_by: ["id"],
        index_advice: null,
      },
      writing: { strategy: "new table" },
      unseen_tables: null,
      notes: [],
      estimated_rows: 5000,
    });
  });

  it("R3.4 another pipeline that fills the same target is named where a full load would delete its rows", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, id)`);
    const config = film();
    const target = { target_table: config["target_table"] };
    const other = await bench.create(config);
    const shared = await validate(film(target));
    expect(told(shared)).toEqual(["warning TARGET_SHARED /target_table"]);
    expect(shared.problems[0].message).toContain(`A full load deletes what "${other.name}" wrote`);
    const incremental = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
    const apart = await validate(film({ ...target, ...incremental }));
    expect(told(apart)).toEqual(["warning TARGET_SHARED /target_table"]);
    expect(told(await ask(`/pipelines/${other.id}/validate`))).toEqual([]);
    const tasks = [{ order_index: 1, task_type: "SQL", body: config["source_query"], ...target }];
    expect(told(await validate(film({ tasks })))).toEqual(["warning TARGET_SHARED /tasks/0/target_table"]);
    const both = film(incremental);
    await bench.create(both);
    expect(told(await validate(film({ ...incremental, target_table: both["target_table"] })))).toEqual([]);
  });

  it("R3.4 takes the key of the target where the pipeline names none", async () => {
    const target = `analytics.${fresh()}`;
    await bench.query(`CREATE TABLE ${target} (title text, id bigint PRIMARY KEY, note text)`);
    const answer = await validate(
      film({ target_table: target, target_key: [], source_query: `SELECT id, title FROM ${table}` }),
    );
    expect(answer).toMatchObject({ valid: true, target: { exists: true, key: ["id"], extra_columns: ["note"] } });
  });
});

describe("every problem at once", () => {
  it("R3.4 names what is wrong with the plan, the schedule, the source and the cursor in one answer", async () => {
    const answer = await validate({
      name: fresh(),
      source_connection: "nowhere",
      schedule_interval: "sometimes",
      mode: "incremental",
      target_table: "pg_catalog.pg_class",
      tasks: [
        { order_index: 1, task_type: "SQL", body: "SELECT 1 AS id" },
        { order_index: 3, task_type: "COBOL", body: "" },
      ],
    });
    expect(answer).toMatchObject({ valid: false, columns: null, target: null, reading: null, writing: null });
    expect(told(answer)).toEqual([
      "error CURSOR_UNUSABLE /incremental_key",
      "error SCHEDULE_INVALID /schedule_interval",
      "error SOURCE_CONNECTION_UNKNOWN /source_connection",
      "error TARGET_NOT_ALLOWED /target_table",
      "error TASK_PLAN_INVALID /tasks/1/body",
      "error TASK_PLAN_INVALID /tasks/1/order_index",
      "error TASK_PLAN_INVALID /tasks/1/task_type",
    ]);
  });

  it("R3.4 names everything that does not fit between query, target, key and cursor", async () => {
    const target = `analytics.${fresh()}`;
    await bench.query(`CREATE TABLE ${target} (id bigint, title integer, code text NOT NULL);
      UPDATE ${table} SET modified = NULL WHERE id = 7`);
    const answer = await validate(
      film({
        target_table: target,
        target_key: ["title"],
        mode: "incremental",
        incremental_key: "modified",
        incremental_id_key: "nobody",
        source_query: `SELECT id, 'x'::text AS title, modified FROM ${table}`,
        schedule_interval: "61 * * * *",
      }),
    );
    expect(answer.valid).toBe(false);
    expect(told(answer)).toEqual([
      "error CURSOR_UNUSABLE /incremental_id_key",
      "error KEY_NOT_UNIQUE_IN_TARGET /target_key",
      "error SCHEDULE_INVALID /schedule_interval",
      "error TARGET_COLUMN_MISSING /target_table",
      "error TARGET_COLUMN_REQUIRED /target_table",
      "error TARGET_TYPE_MISMATCH /target_table",
      "warning KEY_NOT_UNIQUE_IN_SOURCE /target_key",
    ]);
    expect(answer.target).toMatchObject({
      exists: true,
      missing_columns: [{ name: "modified", type: "timestamp with time zone" }],
      extra_columns: ["code"],
    });
  });

  it("R3.4 goes on with the target when the query is refused", async () => {
    const answer = await validate(
      film({ source_query: `SELECT id FROM ${table} WHERE pg_sleep(1) IS NULL`, create_target: false }),
    );
    expect(told(answer)).toEqual(["error QUERY_REFUSED /source_query", "error TARGET_MISSING /target_table"]);
    expect(answer).toMatchObject({ columns: null, reading: null, target: { exists: false, missing_columns: null } });
  });

  it("R3.4 every finding of the guard is told, each with its place", async () => {
    const answer = await validate(
      film({ source_query: `SELECT random() AS id,\n pg_backend_pid() AS x FROM etl.etl_runs` }),
    );
    const places = answer.problems.map(({ code, line }: Problem) => `${code} ${line}`).sort();
    expect(places).toEqual(["QUERY_REFUSED 1", "QUERY_REFUSED 2", "QUERY_REFUSED 2"]);
  });

  it("R3.4 goes on with the query when the target is refused", async () => {
    const answer = await validate(film({ target_table: "content.films" }));
    expect(told(answer)).toEqual(["error TARGET_NOT_ALLOWED /target_table"]);
    expect(answer.columns).toHaveLength(4);
    expect(answer.estimated_rows).toBe(5000);
  });
});

describe("the query", () => {
  it("R3.4 a name that does not exist is told with its line and column", async () => {
    const answer = await validate(film({ source_query: `SELECT id,\n       'ж𝄞' AS t, nosuch\nFROM ${table}` }));
    expect(told(answer)).toEqual(["error SOURCE_QUERY_FAILED /source_query"]);
    expect(answer.problems[0]).toMatchObject({ line: 2, column: 19, message: expect.stringContaining("nosuch") });
  });

  it("R3.4 unnamed and repeated columns are all told", async () => {
    const answer = await validate(film({ source_query: `SELECT id, id, title, title, id + 1 FROM ${table}` }));
    expect(told(answer)).toEqual(Array(3).fill("error SOURCE_COLUMN_NAMES /source_query"));
    const messages = answer.problems.map(({ message }: Problem) => message).join(" ");
    expect(messages).toMatch(/no name.*"id".*"title"/);
  });

  it("R3.4 the query of a task plan is told at its place", async () => {
    const tasks = [
      { order_index: 2, task_type: "TYPESCRIPT", body: "normalise_title" },
      { order_index: 1, task_type: "SQL", body: `SELECT nosuch FROM ${table}` },
    ];
    expect(told(await validate(film({ tasks })))).toEqual(["error SOURCE_QUERY_FAILED /tasks/1/body"]);
  });

  it("R3.4 a source that cannot be reached is told without its address", async () => {
    const answer = await validate(film({ source_connection: "away" }));
    expect(told(answer)).toEqual(["error DATABASE_UNAVAILABLE /source_query"]);
    expect(JSON.stringify(answer)).not.toMatch(/127\.0\.0\.1|secret|nobody/);
  });
});

describe("the target", () => {
  it("R3.4 columns that will be added are no problem, and none is added", async () => {
    const target = `analytics.${fresh()}`;
    await bench.query(`SET ROLE vitrina_writer; CREATE TABLE ${target} (id bigint PRIMARY KEY); RESET ROLE`);
    const answer = await validate(film({ target_table: target, add_columns: true }));
    expect(answer).toMatchObject({ valid: true, problems: [], target: { exists: true, will_create: false } });
    expect(answer.target.missing_columns.map(({ name }: { name: string }) => name)).toEqual([
      "title",
      "rating",
      "modified",
    ]);
    expect(await columnsOf(target)).toEqual(["id"]);
  });

  it("R3.4 a type that the target's cannot take as it is is an error, and so is a column that computes itself", async () => {
    const target = `analytics.${fresh()}`;
    await bench.query(
      `CREATE TABLE ${target} (id bigint PRIMARY KEY, title integer, total bigint GENERATED ALWAYS AS (id * 2) STORED)`,
    );
    const source_query = `SELECT id, title, id AS total FROM ${table}`;
    const answer = await validate(film({ target_table: target, source_query }));
    expect(told(answer)).toEqual(Array(2).fill("error TARGET_TYPE_MISMATCH /target_table"));
    expect(answer.reading.data_path).toBe("push-down");
    expect(answer.problems.map(({ message }: Problem) => message).join(" ")).toMatch(/"title".*integer.*"total"/);
    const wider = film({
      target_table: target,
      source_query: `SELECT id::smallint AS id, 5::smallint AS title FROM ${table}`,
    });
    expect(told(await validate(wider))).toEqual([]);
  });

  it("R3.4 an enum of the source becomes a text in a new table: told beforehand, and then it runs", async () => {
    const [enumType, source] = [`content.${fresh()}`, `content.${fresh()}`];
    await bench.query(`CREATE TYPE ${enumType} AS ENUM ('sad', 'ok');
      CREATE TABLE ${source} (id bigint PRIMARY KEY, mood ${enumType}, moods ${enumType}[]);
      INSERT INTO ${source} VALUES (1, 'ok', '{sad,ok}')`);
    const pipeline = await bench.create(film({ source_query: `SELECT * FROM ${source}` }));
    const answer = await ask(`/pipelines/${pipeline.id}/validate`);
    expect(answer.valid).toBe(true);
    expect(told(answer)).toEqual(Array(2).fill("warning TARGET_TYPE_MAPPED /target_table"));
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    const stored = `SELECT mood, moods, pg_typeof(mood)::text AS a, pg_typeof(moods)::text AS b FROM ${pipeline.target_table}`;
    expect(await bench.query(stored)).toEqual([{ mood: "ok", moods: ["sad", "ok"], a: "text", b: "text[]" }]);
  });

  it("R3.4 a column that the query no longer has is told, with the statement that drops it, also by the run", async () => {
    const pipeline = await bench.create(film({ source_query: `SELECT id, title FROM ${table}`, add_columns: true }));
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    await bench.query(
      `UPDATE etl.etl_pipelines SET source_query = 'SELECT id, title AS name FROM ${table}' WHERE id = $1`,
      [pipeline.id],
    );
    const { valid, problems } = await ask(`/pipelines/${pipeline.id}/validate`);
    expect(valid).toBe(true);
    expect(problems).toMatchObject([
      {
        code: "TARGET_COLUMN_LEFT",
        severity: "warning",
        hint: expect.stringMatching(/ DROP COLUMN "title"; it takes/),
      },
    ]);
    const { id: runId } = await bench.run(pipeline);
    const lines = await bench.query(
      "SELECT message FROM etl.etl_run_logs WHERE run_id = $1 AND message LIKE '%old values%'",
      [runId],
    );
    expect(lines).toHaveLength(1);
  });

  it("R3.4 capitals without quotes are read as PostgreSQL reads them, and that is told", async () => {
    const name = fresh();
    const told_ = await validate(film({ target_table: `analytics.X${name}` }));
    expect(told(told_)).toEqual(["warning TARGET_NAME_FOLDED /target_table"]);
    expect(told_.problems[0].message).toContain(`analytics.x${name}`);
    expect(told(await validate(film({ target_table: `analytics."X${name}"` })))).toEqual([]);
  });

  it("R3.4 a demanded column is only a warning where a trigger may fill it", async () => {
    const target = `analytics.${fresh()}`;
    await bench.query(`CREATE TABLE ${target} (id bigint PRIMARY KEY, code text NOT NULL);
      CREATE FUNCTION ${target}_fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.code = 1; RETURN NEW; END';
      CREATE TRIGGER fill BEFORE INSERT ON ${target} FOR EACH ROW EXECUTE FUNCTION ${target}_fill()`);
    const answer = await validate(film({ target_table: target, source_query: `SELECT id FROM ${table}` }));
    expect(told(answer)).toEqual(["warning TARGET_COLUMN_REQUIRED /target_table"]);
    expect(answer.valid).toBe(true);
  });

  it("R3.4 a view is no target, and a table without a key needs target_key", async () => {
    const view = `analytics.${fresh()}`;
    await bench.query(`CREATE VIEW ${view} AS SELECT 1 AS id`);
    expect(told(await validate(film({ target_table: view })))).toEqual(["error TARGET_MISSING /target_table"]);
    expect(told(await validate(film({ target_key: [] })))).toEqual(["error KEY_MISSING /target_key"]);
  });

  it("R3.1 an index of a search server is not looked at from here", async () => {
    const bare = await openTryOut({ TARGET_INDEXES: "films" });
    try {
      await bare.query("CREATE TABLE content.film (id bigint PRIMARY KEY)");
      const config = {
        name: "film",
        source_query: "SELECT id FROM content.film",
        target_table: "es:films",
        target_key: ["id"],
      };
      const { body } = await bare.post("/validate", config);
      expect(body).toMatchObject({
        target: { table: "es:films", exists: null, note: expect.stringMatching(/runner/) },
        reading: { data_path: "rows", order_by: ["id"] },
        writing: null,
      });
    } finally {
      await bare.close();
    }
  });
});

describe("the key", () => {
  it("R3.4 a key that the query repeats or lacks is told", async () => {
    const twice = film({ source_query: `SELECT id / 2 AS id, title FROM ${table}` });
    expect(told(await validate(twice))).toEqual(["error KEY_NOT_UNIQUE_IN_SOURCE /target_key"]);
    const keyless = { source_query: `SELECT NULLIF(id, 7) AS id, title FROM ${table}` };
    expect(told(await validate(film(keyless)))).toEqual(["warning KEY_NULL_IN_SOURCE /target_key"]);
    expect(told(await validate(film({ ...keyless, max_rejects: 0 })))).toEqual([
      "error KEY_NULL_IN_SOURCE /target_key",
    ]);
    const lacking = film({ target_key: ["id", "nobody"] });
    expect(told(await validate(lacking))).toEqual(["error KEY_NOT_IN_QUERY /target_key"]);
  });
});

describe("the cursor", () => {
  const incremental = (more: object = {}) =>
    film({ mode: "incremental", incremental_key: "modified", incremental_id_key: "id", ...more });

  it("R3.4 without an index it is a warning, with the statement that makes one", async () => {
    const answer = await validate(incremental());
    expect(told(answer)).toEqual(["warning CURSOR_UNINDEXED /incremental_key"]);
    const statement = `CREATE INDEX ON ${table} (modified, id)`;
    expect(answer).toMatchObject({ valid: true, reading: { index_advice: statement, order_by: ["modified", "id"] } });
    expect(answer.problems[0].hint).toContain(statement);
    await bench.query(answer.reading.index_advice);
    expect(await validate(incremental())).toMatchObject({ problems: [], reading: { index_advice: null } });
  });

  it("R3.4 a text needs an index by bytes, and a computed cursor is told in words", async () => {
    await bench.query(`ALTER TABLE ${table} ADD "Last Change" text; UPDATE ${table} SET "Last Change" = id;
      CREATE INDEX ON ${table} ("Last Change")`);
    const text = incremental({
      incremental_key: "Last Change",
      source_query: `SELECT id, "Last Change" FROM ${table}`,
    });
    const statement = `CREATE INDEX ON ${table} ("Last Change" COLLATE "C", id)`;
    expect((await validate(text)).reading.index_advice).toBe(statement);
    await bench.query(statement);
    expect((await validate(text)).problems).toEqual([]);
    const computed = incremental({
      source_query: `SELECT id, max(modified) + interval '1 second' AS modified FROM ${table} GROUP BY id`,
    });
    const answer = await validate(computed);
    expect(told(answer)).toEqual(["warning CURSOR_UNINDEXED /incremental_key"]);
    expect(answer.reading.index_advice).toMatch(/computes/);
  });

  it("R3.4 rows without a value are an error, unless they are excluded on purpose", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, id); UPDATE ${table} SET modified = NULL WHERE id = 3`);
    expect(told(await validate(incremental()))).toEqual(["error CURSOR_NULL /incremental_key"]);
    expect(told(await validate(incremental({ null_cursor: "exclude" })))).toEqual([]);
  });

  it("R3.4 rows with the same cursor are a warning, and are ordered by the key behind it", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, rating)`);
    const unique = incremental({ incremental_id_key: "rating" });
    expect(told(await validate(unique))).toEqual([]);
    await bench.query(`UPDATE ${table} SET modified = '2020-01-02'`);
    const answer = await validate(unique);
    expect(told(answer)).toEqual(["warning CURSOR_NOT_UNIQUE /incremental_id_key"]);
    expect(answer).toMatchObject({ valid: true, reading: { order_by: ["modified", "rating", "id"] } });
    expect(told(await validate(incremental()))).toEqual([]);
  });

  it("R3.4 tables whose changes do not move the cursor are named", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, id)`);
    const other = `content.${fresh()}`;
    await bench.query(
      `CREATE TABLE ${other} (id bigint PRIMARY KEY, changed timestamptz); INSERT INTO ${other} VALUES (1, now())`,
    );
    const join = `FROM ${table} t LEFT JOIN ${other} o ON o.id = t.id`;
    const blind = await validate(incremental({ source_query: `SELECT t.id, t.modified, o.changed ${join}` }));
    expect(told(blind)).toEqual(["warning CHANGES_UNSEEN /incremental_key"]);
    const notes = [expect.stringContaining("deleted"), expect.stringContaining("keeps its old values")];
    expect(blind).toMatchObject({ valid: true, unseen_tables: [other], notes });
    expect(blind.problems[0].message).toContain(other);
    const seeing = `SELECT t.id, greatest(t.modified, o.changed) AS modified ${join}`;
    expect(await validate(incremental({ source_query: seeing }))).toMatchObject({ unseen_tables: [] });
    expect(await validate(film())).toMatchObject({ unseen_tables: null, notes: [] });
  });

  it("R3.4 a type that does not grow is refused", async () => {
    const answer = await validate(
      incremental({ source_query: `SELECT id, md5(title)::uuid AS modified FROM ${table}` }),
    );
    expect(told(answer)).toEqual(["error CURSOR_UNUSABLE /incremental_key"]);
  });

  it("R3.4 tells how many rows are left from where the pipeline is", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, id)`);
    const pipeline = await bench.create(incremental());
    expect((await ask(`/pipelines/${pipeline.id}/validate`)).estimated_rows).toBe(5000);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect((await ask(`/pipelines/${pipeline.id}/validate`)).estimated_rows).toBeLessThan(100);
  });
});

describe("code tasks", () => {
  it("R3.4 a task that no living runner has is told at its place; without a runner it is left open", async () => {
    const tasks = [
      { order_index: 1, task_type: "SQL", body: `SELECT id, title FROM ${table}` },
      { order_index: 2, task_type: "PYTHON", body: "normalise_title" },
      { order_index: 3, task_type: "TYPESCRIPT", body: "normalise_title" },
    ];
    expect(told(await validate(film({ tasks })))).toEqual(["error TASK_UNKNOWN /tasks/1/body"]);
    const lonely = await openTryOut();
    try {
      await lonely.query("CREATE TABLE content.film (id bigint PRIMARY KEY)");
      const [reader, ...rest] = tasks;
      const plan = film({ tasks: [{ ...reader, body: "SELECT id FROM content.film" }, ...rest] });
      expect((await lonely.post("/validate", plan)).body.problems).toEqual([]);
    } finally {
      await lonely.close();
    }
  });

  it("R3.4 the rows travel through the process, and the target's columns are not guessed", async () => {
    const tasks = [
      { order_index: 1, task_type: "SQL", body: `SELECT id, title FROM ${table}` },
      { order_index: 2, task_type: "TYPESCRIPT", body: "normalise_title" },
    ];
    const answer = await validate(film({ tasks }));
    expect(answer).toMatchObject({
      valid: true,
      target: { missing_columns: null, note: expect.stringMatching(/code tasks/) },
      reading: { data_path: "rows", strategy: "single_scan", order_by: ["id"] },
      writing: { strategy: "shadow and merge" },
    });
  });
});

describe("a stored pipeline", () => {
  it("R3.4 is validated as it is, or with a change that is only tried out", async () => {
    const pipeline = await bench.create(film());
    expect(await ask(`/pipelines/${pipeline.name}/validate`)).toMatchObject({ valid: true });
    expect(await ask(`/pipelines/${pipeline.name}/validate`, {})).toMatchObject({ valid: true });
    const changed = await ask(`/pipelines/${pipeline.id}/validate`, { source_query: `SELECT title FROM ${table}` });
    expect(told(changed)).toEqual(["error KEY_NOT_IN_QUERY /target_key"]);
    expect(await bench.store.pipelines.get(pipeline.id)).toEqual(pipeline);
  });

  it("R3.4 a change of query under an old checkpoint is announced; stored, it is an error", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, id)`);
    const cursor = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
    const pipeline = await bench.create(film(cursor));
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    const change = { source_query: `SELECT id, title, rating, modified FROM ${table} WHERE id > 0` };
    expect(told(await ask(`/pipelines/${pipeline.id}/validate`, change))).toEqual(["warning STATE_OF_OTHER_CONFIG "]);
    const changed = await bench.store.pipelines.update(pipeline.id, change, { author: "test" });
    expect(told(await ask(`/pipelines/${pipeline.id}/validate`))).toEqual(["error STATE_OF_OTHER_CONFIG "]);
    expect(await bench.run(changed)).toMatchObject({ status: "FAILED", error_code: "STATE_OF_OTHER_CONFIG" });
  });

  it("R3.4 a position that is no value of the cursor is told, and fails the run", async () => {
    await bench.query(`CREATE INDEX ON ${table} (modified, id)`);
    const cursor = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
    const pipeline = await bench.create(film(cursor));
    await bench.store.state.set(pipeline.id, { value: "yesterday noon", id: null });
    expect(told(await ask(`/pipelines/${pipeline.id}/validate`))).toEqual(["error STATE_UNUSABLE "]);
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "STATE_UNUSABLE" });
  });

  it("R3.6 an unknown one is 404, and a field that does not exist is 422", async () => {
    expect((await bench.post("/pipelines/nobody/validate")).status).toBe(404);
    const pipeline = await bench.create(film());
    expect((await bench.post(`/pipelines/${pipeline.id}/validate`, { status: "IDLE" })).status).toBe(422);
    expect((await bench.post("/validate", {})).status).toBe(422);
  });
});

describe("what it says is what a run does", () => {
  const INCREMENTAL = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
  const KINDS: Record<string, object> = {
    "a new target": {},
    "a target without an index of the cursor": INCREMENTAL,
    "an aggregate": { source_query: "SELECT title AS id, count(*) AS n FROM TABLE GROUP BY title" },
    "a cursor without an id": { ...INCREMENTAL, incremental_id_key: null },
    "a key of text": { source_query: "SELECT title AS id, modified FROM TABLE" },
  };

  it.each(Object.entries(KINDS))(
    "R3.4 data path and strategy of %s, the first time and the second",
    async (_, more) => {
      const config = film(more);
      const source_query = asString(config["source_query"]).replace("TABLE", table);
      const pipeline: Pipeline = await bench.create({ ...config, source_query, batch_size: 500 });
      for (const _time of ["first", "second"]) {
        const { valid, reading, writing } = await ask(`/pipelines/${pipeline.id}/validate`);
        expect(valid).toBe(true);
        const run = await bench.run(pipeline);
        expect(run).toMatchObject({ status: "SUCCESS", data_path: reading.data_path, strategy: writing.strategy });
      }
    },
  );

  it.each([
    ["TARGET_MISSING", { create_target: false }],
    ["KEY_NOT_IN_QUERY", { target_key: ["nobody"] }],
    ["SOURCE_COLUMN_NAMES", { source_query: "SELECT 1 AS id, 2 AS id" }],
    ["CURSOR_UNUSABLE", { ...INCREMENTAL, incremental_key: "nobody" }],
    [
      "TARGET_TYPE_MISMATCH",
      { target_table: "analytics.flags", source_query: "SELECT 1::bigint AS id, 'yes'::text AS flag" },
    ],
    ["TARGET_TYPE_MISMATCH", { target_table: "analytics.flags", source_query: "SELECT 1.5 AS id, true AS flag" }],
  ])("R3.4 what is an error here fails the run: %s", async (code, more) => {
    await bench.query("CREATE TABLE IF NOT EXISTS analytics.flags (id bigint PRIMARY KEY, flag boolean)");
    const pipeline = await bench.create(film(more));
    const { valid, problems } = await ask(`/pipelines/${pipeline.id}/validate`);
    expect({ valid, code: problems[0].code }).toEqual({ valid: false, code });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: code });
  });

  it("R3.4 a demanded column fails the run, too", async () => {
    const target_table = `analytics.${fresh()}`;
    await bench.query(`CREATE TABLE ${target_table} (id bigint PRIMARY KEY, code text NOT NULL);
      ALTER TABLE ${target_table} OWNER TO vitrina_writer`);
    const pipeline = await bench.create(film({ target_table, source_query: `SELECT id FROM ${table}` }));
    expect(told(await ask(`/pipelines/${pipeline.id}/validate`))).toEqual([
      "error TARGET_COLUMN_REQUIRED /target_table",
    ]);
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TARGET_COLUMN_REQUIRED" });
  });
});

describe("limits", () => {
  it("R3.4 checks that take too long are left out, and said", async () => {
    const slow = "SELECT md5(a::text || b) AS id FROM generate_series(1, 99999) a, generate_series(1, 99999) b";
    const answer = await validate(film({ source_query: slow }));
    expect(told(answer)).toEqual([
      // Whether the key has NULLs, and whether it is unique.
      "warning CHECK_TIMED_OUT /target_key",
      "warning CHECK_TIMED_OUT /target_key",
    ]);
    expect(answer.columns).toEqual([{ name: "id", type: "text" }]);
    // The planner alone says how it would be read.
    expect(answer).toMatchObject({ valid: true, reading: { data_path: "stream" } });
  });

  it("R3.4 a table that somebody locks is not waited for", async () => {
    const owner = new pg.Client({ connectionString: bench.database.url });
    await owner.connect();
    try {
      await owner.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      const answer = await validate(film());
      expect(told(answer)).toEqual(["error CHECK_TIMED_OUT /source_query"]);
      expect(answer.problems[0]?.message).toMatch(/ is locked by process \d+ /);
      expect(answer.target).toMatchObject({ exists: false });
    } finally {
      await owner.end();
    }
  });

  it("R3.4 nothing is changed, whatever is asked", async () => {
    const target = `analytics.${fresh()}`;
    await bench.query(
      `CREATE TABLE ${target} (id bigint PRIMARY KEY, title text); INSERT INTO ${target} VALUES (1, 'a')`,
    );
    const pipeline = await bench.create(film({ target_table: target, add_columns: true }));
    const before = await everything();
    await ask(`/pipelines/${pipeline.id}/validate`);
    await ask(`/pipelines/${pipeline.id}/validate`, { mode: "incremental", incremental_key: "modified" });
    await ask(`/pipelines/${pipeline.id}/validate`, { target_table: `analytics.${fresh()}`, batch_size: 7 });
    await validate(film({ source_query: `SELECT nosuch FROM ${table}` }));
    expect(await everything()).toEqual(before);
  });
});

async function columnsOf(relation: string): Promise<string[]> {
  const rows = await bench.query(
    "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum",
    [relation],
  );
  return rows.map(({ attname }) => asString(attname));
}

/** The catalog and every row of every table, as digests. */
async function everything(): Promise<unknown> {
  const tables = await bench.query(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND n.nspname IN ('content', 'analytics', 'etl')
        AND c.relname <> 'etl_runners' ORDER BY 1`,
  );
  const digests = [];
  for (const { name } of tables) {
    const [row] = await bench.query(
      `SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) AS rows FROM ${asString(name)} t`,
    );
    digests.push({ name, rows: row?.["rows"] });
  }
  const catalog = await bench.query(
    `SELECT md5(string_agg(a::text, '|' ORDER BY a.attrelid, a.attnum)) AS columns FROM pg_attribute a`,
  );
  return { digests, catalog };
}
