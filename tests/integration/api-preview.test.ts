import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectProblem, startTestApi } from "../support/api-client.ts";
import { openTryOut, type TryOut } from "../support/try-out.ts";
import { until } from "../support/until.ts";

/** Years of work, without filling a disk with rows that wait. */
const ENDLESS =
  "SELECT count(*) AS n FROM generate_series(1, 99999) a, generate_series(1, 99999) b, generate_series(1, 99999) c";

let bench: TryOut;
beforeAll(async () => {
  bench = await openTryOut({ PREVIEW_TIMEOUT_SECONDS: "20" });
  await bench.query("CREATE TABLE content.film (id bigint PRIMARY KEY, title text)");
  await bench.query("INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 500) n");
});
afterAll(() => bench.close());

const preview = (source_query: string, more: object = {}) => bench.post("/api/v1/preview", { source_query, ...more });

describe("the first rows", () => {
  it("R3.1 come with names and types, twenty by default", async () => {
    const { status, body } = await preview("SELECT id, title FROM content.film ORDER BY id");
    expect(status).toBe(200);
    expect(body.columns).toEqual([
      { name: "id", type: "bigint" },
      { name: "title", type: "text" },
    ]);
    expect(body.rows).toHaveLength(20);
    expect(body.rows[0]).toEqual(["1", "film 1"]);
    expect(body).toMatchObject({ cut: [], complete: false });
  });

  it("are as many as asked for, up to 200, and it is told whether there are more", async () => {
    const some = (limit: unknown) => preview("SELECT id FROM content.film WHERE id <= 200", { limit });
    expect((await some(200)).body).toMatchObject({ complete: true });
    expect((await some(200)).body.rows).toHaveLength(200);
    expect((await some(199)).body).toMatchObject({ complete: false });
    expect((await some(199)).body.rows).toHaveLength(199);
    for (const limit of [0, 201, "many", 1.5]) expectProblem(await some(limit), "INVALID_REQUEST");
  });

  it("R5.2 every value is the exact text of PostgreSQL, as a run would carry it", async () => {
    const { body } = await preview(`
      SELECT 9007199254740993::bigint AS "big", 1.10::numeric AS "num ber", '2020-01-01 00:00:00.000001+00'::timestamptz AS "at",
             true AS yes, NULL::text AS nothing, ''::text AS empty, 'a  '::char(4) AS padded, '10.0.0.1'::inet AS address,
             '\\x00ff'::bytea AS bytes, ARRAY[1, NULL] AS list, ROW(NULL, NULL) AS pair, '{"a": 1.0}'::json AS doc,
             'NaN'::float8 AS odd, E'a\\tb\\n"' AS "quo""ted", '𝄞' AS clef -- the end`);
    expect(body.rows).toEqual([
      [
        "9007199254740993",
        "1.10",
        "2020-01-01 00:00:00.000001+00",
        "t",
        null,
        "",
        "a   ",
        "10.0.0.1",
        "\\x00ff",
        "{1,NULL}",
        "(,)",
        '{"a": 1.0}',
        "NaN",
        'a\tb\n"',
        "𝄞",
      ],
    ]);
  });

  it("long texts are cut and marked, counted in characters", async () => {
    const { body } = await preview("SELECT repeat('𝄞', 1000) AS fits, repeat('𝄞', 1001) AS cut, 'x' AS short");
    expect(body.rows[0]).toEqual(["𝄞".repeat(1000), "𝄞".repeat(1000), "x"]);
    expect(body.cut).toEqual([{ row: 0, column: 1 }]);
  });

  it("the whole is at most 1 MiB, and says that rows are missing", async () => {
    const wide = Array.from({ length: 30 }, (_, index) => `repeat('ж', 900) AS c${index}`).join(", ");
    const { body, text } = await preview(`SELECT ${wide} FROM content.film`, { limit: 200 });
    expect(body.rows.length).toBeGreaterThan(10);
    expect(body.complete).toBe(false);
    expect(Buffer.byteLength(text)).toBeLessThan(1.2 * 1024 * 1024);
  });
});

describe("of a pipeline", () => {
  it("R3.1 are those of its query, before any code task, or of a change that is tried out", async () => {
    const tasks = [
      { order_index: 2, task_type: "TYPESCRIPT", body: "normalise_title" },
      { order_index: 1, task_type: "SQL", body: "SELECT id, title FROM content.film WHERE id = 7" },
    ];
    const { id } = await bench.create({ tasks });
    expect((await bench.post(`/pipelines/${id}/preview`)).body.rows).toEqual([["7", "film 7"]]);
    const change = { tasks: [], source_query: "SELECT id FROM content.film ORDER BY id" };
    expect((await bench.post(`/pipelines/${id}/preview?limit=2`, change)).body.rows).toEqual([["1"], ["2"]]);
    expectProblem(await bench.post("/pipelines/nobody/preview"), "PIPELINE_NOT_FOUND");
  });
});

describe("what is refused", () => {
  it.each([
    "SELECT pg_sleep(60)::text AS x",
    "SELECT 1 AS id; DROP TABLE content.film",
    "DELETE FROM content.film RETURNING id",
    "WITH gone AS (DELETE FROM content.film RETURNING id) SELECT id FROM gone",
    "SELECT pg_read_file('/etc/passwd') AS x",
    "SELECT id FROM content.film FOR UPDATE",
  ])("R6 %s", async (query) => {
    expectProblem(await preview(query), "QUERY_REFUSED");
    expect(await bench.query("SELECT count(*)::int AS n FROM content.film")).toEqual([{ n: 500 }]);
  });

  it("R3.6 a query that does not run is a problem of the caller, with its place", async () => {
    const answer = await preview("SELECT id,\n  nosuch FROM content.film");
    expectProblem({ ...answer, text: "" }, "SOURCE_QUERY_FAILED");
    expect(answer.body).toMatchObject({ line: 2, column: 3 });
    expectProblem(
      { ...(await preview("SELECT 1 / (id - id) AS x FROM content.film")), text: "" },
      "SOURCE_QUERY_FAILED",
    );
  });

  it("R3.6 a table that the reader may not read is a problem of the caller, too", async () => {
    await bench.query("CREATE SCHEMA ugc; CREATE TABLE ugc.secret (id int)");
    const answer = await preview("SELECT id FROM ugc.secret");
    expectProblem({ ...answer, text: "" }, "SOURCE_QUERY_FAILED");
    expect(answer.body.detail).toMatch(/permission denied/);
  });

  it("R3.6 an unknown connection, and a body that is not one", async () => {
    expectProblem(await preview("SELECT 1 AS id", { source_connection: "nowhere" }), "SOURCE_CONNECTION_UNKNOWN");
    expectProblem(await preview("SELECT 1 AS id", { target_table: "analytics.x" }), "INVALID_REQUEST");
    expectProblem(await bench.post("/preview"), "INVALID_REQUEST");
  });
});

describe("limits", () => {
  /** The sessions of previews that execute something. */
  const atWork = async (): Promise<number> => {
    const rows = await bench.query(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'vitrina api inspect' AND query LIKE 'FETCH%' AND state = 'active' AND datname = current_database()",
    );
    return rows.length;
  };

  it("a client that goes away ends its query, and a fifth at once is turned away", async () => {
    const controllers = [1, 2, 3, 4].map(() => new AbortController());
    const asked = controllers.map(({ signal }) =>
      bench.post("/preview", { source_query: ENDLESS }, { signal }).catch((error: Error) => error.name),
    );
    await until("four previews are at work", async () => (await atWork()) === 4);
    expectProblem(await preview("SELECT 1 AS id"), "PREVIEW_BUSY");
    for (const controller of controllers) controller.abort();
    expect(await Promise.all(asked)).toEqual(Array(4).fill("AbortError"));
    await until("their queries are cancelled", async () => (await atWork()) === 0);
    expect((await preview("SELECT 1 AS id")).status).toBe(200);
  });

  it("a query that takes too long is ended and said so", async () => {
    const quick = await openTryOut({ PREVIEW_TIMEOUT_SECONDS: "1" });
    try {
      expectProblem(await quick.post("/preview", { source_query: ENDLESS }), "QUERY_TOO_SLOW");
    } finally {
      await quick.close();
    }
  });

  it("R8.2 a server that does not stop gets no more than the time, and the operator learns which process it is", async () => {
    const api = await startTestApi({ PREVIEW_TIMEOUT_SECONDS: "3" });
    const backends = async (): Promise<number[]> => {
      const rows = await api.database.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'vitrina api inspect' AND query LIKE 'FETCH%' AND datname = current_database()",
      );
      return rows.map(({ pid }) => Number(pid));
    };
    const frozen: number[] = [];
    try {
      const asked = [1, 2, 3, 4].map(() => api.post("/preview", { source_query: ENDLESS }));
      await until("four previews are at work", async () => (await backends()).length === 4);
      // As one that plans: it looks neither at its clock nor at being asked to end.
      for (const pid of await backends()) {
        process.kill(pid, "SIGSTOP");
        frozen.push(pid);
      }
      for (const answer of await Promise.all(asked)) expectProblem(answer, "QUERY_TOO_SLOW");
      expect((await backends()).sort()).toEqual(frozen.sort());
      expect((await api.post("/preview", { source_query: "SELECT 1 AS id" })).status).toBe(200);
      const stuck = (pid: number) => api.logged.some((line) => line.includes(`"backend_pid":${pid}`));
      await until("all are told to the operator", async () => frozen.every(stuck));
      expect((await api.get("/metrics")).text).toContain("vitrina_source_backends_stuck_total 4");
    } finally {
      for (const pid of frozen) process.kill(pid, "SIGCONT");
      await until("they have ended", async () => (await backends()).length === 0);
      await api.stop();
    }
  });

  it("every preview closes its connection", async () => {
    await preview("SELECT 1 AS id");
    await until("no connection is left", async () => {
      const rows = await bench.query(
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'vitrina api inspect' AND datname = current_database()",
      );
      return rows.length === 0;
    });
  });
});
