import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WITH_TASKS } from "../support/pipelines.ts";
import { openTryOut, type TryOut } from "../support/try-out.ts";

/** A table that somebody else made may refuse the writer, or do something else than it is told: that is not silent. */

let bench: TryOut;
beforeAll(async () => {
  bench = await openTryOut(WITH_TASKS);
  await bench.startRunner();
  await bench.query(`CREATE TABLE content.film (id int PRIMARY KEY, title text, modified timestamptz);
    CREATE INDEX ON content.film (modified, id);
    INSERT INTO content.film SELECT n, 'film ' || n, '2020-01-01'::timestamptz + n * interval '1 second' FROM generate_series(1, 300) n`);
});
afterAll(() => bench.close());

const INCREMENTAL = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
const QUERY = "SELECT id, title, modified FROM content.film";
const WITH_TASK = {
  add_columns: true,
  tasks: [
    { order_index: 1, task_type: "SQL", body: QUERY },
    { order_index: 2, task_type: "TYPESCRIPT", body: 'normalise_title {"column": "title"}' },
  ],
};

/** The target as an owner of the database makes it, for the writer or not. */
async function target(statements: (table: string) => string, role = "vitrina_writer"): Promise<string> {
  const table = `analytics.t_${randomUUID().slice(0, 8)}`;
  await bench.query(`SET ROLE ${role}; CREATE TABLE ${table} (id int PRIMARY KEY, title text, modified timestamptz);
    ${statements(table)}; RESET ROLE`);
  return table;
}

async function tryOut(table: string, more: object) {
  const query = "tasks" in more ? {} : { source_query: QUERY };
  const config = { ...query, target_table: table, target_key: ["id"], create_target: false, ...more };
  const { body } = await bench.post("/api/v1/validate", { name: `p_${randomUUID().slice(0, 8)}`, ...config });
  const pipeline = await bench.create(config);
  const run = await bench.run(pipeline);
  const problems = body.problems as { severity: string; code: string; message: string; hint: string }[];
  return { valid: body.valid, problems, run, pipeline };
}

const MODES: [string, object][] = [
  ["full", {}],
  ["incremental", INCREMENTAL],
  ["through a task", WITH_TASK],
];

it.each(MODES)("a target with a rule is refused, %s, before it swallows rows", async (_, more) => {
  const table = await target((name) => `CREATE RULE few AS ON INSERT TO ${name} WHERE NEW.id < 10 DO INSTEAD NOTHING`);
  const { valid, problems, run } = await tryOut(table, more);
  expect(valid).toBe(false);
  expect(problems).toMatchObject([{ severity: "error", code: "TARGET_HAS_RULES" }]);
  expect(run).toMatchObject({ status: "FAILED", error_code: "TARGET_HAS_RULES", attempt: 1, rows_written: 0 });
  expect(run.error).toContain("few");
});

it.each(MODES)("a trigger that leaves rows out fails the run, %s, and nothing counts as written", async (_, more) => {
  const table = await target((name) => {
    const skip = `${name}_skip`;
    return `CREATE FUNCTION ${skip}() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN IF NEW.id % 100 = 0 THEN RETURN NULL; END IF; RETURN NEW; END';
      CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON ${name} FOR EACH ROW EXECUTE FUNCTION ${skip}()`;
  });
  const { run, pipeline } = await tryOut(table, more);
  expect(run).toMatchObject({ status: "FAILED", error_code: "ROWS_LEFT_OUT", attempt: 1 });
  expect(run.error).toContain("3 rows are not there");
  expect(await bench.rowsOf(table)).toEqual([]);
  await bench.query(`ALTER TABLE ${table} DISABLE TRIGGER skip`);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 300 });
});

/** With a trigger that says no for one row, and rows that a load must change or delete. */
const unwilling = (event: "UPDATE" | "DELETE") =>
  target((name) => {
    const refuse = `${name}_refuse`;
    return `INSERT INTO ${name} SELECT n, 'old', now() FROM generate_series(291, 310) n;
      CREATE FUNCTION ${refuse}() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN IF OLD.id IN (299, 301) THEN RETURN NULL; ELSIF TG_OP = ''DELETE'' THEN RETURN OLD; END IF; RETURN NEW; END';
      CREATE TRIGGER refuse BEFORE ${event} ON ${name} FOR EACH ROW EXECUTE FUNCTION ${refuse}()`;
  });

/** Without the columns that a run may add before its first row. */
const valuesOf = (table: string) => bench.rowsOf(`(SELECT id, title, modified FROM ${table})`);

it.each(MODES)("a trigger that leaves a row as it was fails the run, %s", async (_, more) => {
  const table = await unwilling("UPDATE");
  const before = await valuesOf(table);
  const { run, pipeline } = await tryOut(table, more);
  expect(run).toMatchObject({ status: "FAILED", error_code: "ROWS_LEFT_OUT", attempt: 1 });
  expect(run.error).toContain("1 row is as it was before writing");
  expect(await valuesOf(table)).toEqual(before);
  await bench.query(`ALTER TABLE ${table} DISABLE TRIGGER refuse`);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 300 });
});

it.each([
  ["full", {}],
  ["through a task", WITH_TASK],
])("a trigger that keeps a row from being deleted fails the run, %s", async (_, more) => {
  const table = await unwilling("DELETE");
  const before = await valuesOf(table);
  const { run, pipeline } = await tryOut(table, more);
  expect(run).toMatchObject({ status: "FAILED", error_code: "ROWS_LEFT_OUT", attempt: 1 });
  expect(run.error).toContain("1 row is still there after deleting");
  expect(await valuesOf(table)).toEqual(before);
  await bench.query(`ALTER TABLE ${table} DISABLE TRIGGER refuse`);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_deleted: 10 });
});

it.each(MODES)("a trigger that changes values may make of a row what it was, %s", async (_, more) => {
  const table = await target((name) => {
    const fix = `${name}_fix`;
    return `INSERT INTO ${name} SELECT n, 'fixed', now() FROM generate_series(1, 10) n;
      CREATE FUNCTION ${fix}() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN NEW.title := ''fixed''; NEW.modified := OLD.modified; RETURN NEW; END';
      CREATE TRIGGER fix BEFORE UPDATE ON ${name} FOR EACH ROW EXECUTE FUNCTION ${fix}()`;
  });
  expect((await tryOut(table, more)).run).toMatchObject({ status: "SUCCESS", rows_written: 300 });
  expect(await bench.query(`SELECT count(*)::int AS n FROM ${table} WHERE title = 'fixed'`)).toEqual([{ n: 10 }]);
});

it("a trigger that fills a column, or takes a row elsewhere below the target, is left alone", async () => {
  const table = await target((name) => {
    const stamp = `${name}_stamp`;
    return `ALTER TABLE ${name} ADD seen timestamptz; CREATE TABLE ${name}_late () INHERITS (${name});
      CREATE FUNCTION ${stamp}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.seen := now();
        IF NEW.id <= 200 THEN RETURN NEW; END IF; INSERT INTO ${name}_late VALUES (NEW.*); RETURN NULL; END';
      CREATE TRIGGER stamp BEFORE INSERT ON ${name} FOR EACH ROW EXECUTE FUNCTION ${stamp}()`;
  });
  const { valid, run } = await tryOut(table, INCREMENTAL);
  expect({ valid, status: run.status, written: run.rows_written }).toEqual({
    valid: true,
    status: "SUCCESS",
    written: 300,
  });
});

it.each(MODES)("a target that the writer may not write is not valid, %s, and the grant is named", async (_, more) => {
  const table = await target(
    (name) => `REVOKE ALL ON ${name} FROM vitrina_writer; GRANT SELECT, INSERT ON ${name} TO vitrina_writer`,
    "NONE",
  );
  const { valid, problems, run } = await tryOut(table, more);
  expect(valid).toBe(false);
  const lacking = more === INCREMENTAL ? "UPDATE" : "UPDATE, DELETE";
  expect(problems).toMatchObject([{ severity: "error", code: "PERMISSION_DENIED" }]);
  expect(problems[0]?.message).toContain(`vitrina_writer lacks ${lacking} on`);
  expect(problems[0]?.hint).toMatch(/GRANT UPDATE.* TO "vitrina_writer"/);
  expect(run).toMatchObject({ status: "FAILED", error_code: "PERMISSION_DENIED", attempt: 1, rows_read: 0 });
});

it("a column can be added only by who owns the table, and that is told beforehand", async () => {
  const table = await target(
    (name) => `ALTER TABLE ${name} DROP title; GRANT ALL ON ${name} TO vitrina_writer`,
    "NONE",
  );
  const { valid, problems, run } = await tryOut(table, { add_columns: true });
  expect(valid).toBe(false);
  expect(problems[0]?.message).toContain("does not own");
  expect(run).toMatchObject({ status: "FAILED", error_code: "PERMISSION_DENIED", attempt: 1 });
});

it("row-level security that holds for the writer is told, and does no harm where it lets every row through", async () => {
  const table = await target(
    (name) => `GRANT ALL ON ${name} TO vitrina_writer;
    ALTER TABLE ${name} ENABLE ROW LEVEL SECURITY; CREATE POLICY all_rows ON ${name} USING (true)`,
    "NONE",
  );
  const { valid, problems, run } = await tryOut(table, {});
  expect({ valid, status: run.status }).toEqual({ valid: true, status: "SUCCESS" });
  expect(problems).toMatchObject([{ severity: "warning", code: "TARGET_ROWS_HIDDEN" }]);
});
