import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startApi } from "../../src/main/api.ts";
import { ownConnections } from "../../src/main/own-source.ts";
import { createLog } from "../../src/observability/log.ts";
import { errorsOf, JSON_TYPE, pipelineBody, startTestApi, type TestApi } from "../support/api-client.ts";

/** What people are told about marts that follow: plan, script, status, and what is refused. */

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ SOURCE_SCHEMAS: "content,analytics" });
  await api.database.query(`CREATE SCHEMA IF NOT EXISTS content;
    CREATE TABLE content.film (id int PRIMARY KEY, title text NOT NULL, note text);
    CREATE TABLE content.genre (id int PRIMARY KEY, name text NOT NULL);
    CREATE TABLE content.film_genre (film_id int, genre_id int, PRIMARY KEY (film_id, genre_id));
    INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 20000) n;
    INSERT INTO content.genre SELECT n, 'genre ' || n FROM generate_series(1, 500) n;
    INSERT INTO content.film_genre SELECT n, n % 500 + 1 FROM generate_series(1, 20000) n;
    CREATE TABLE analytics.films (film_id int PRIMARY KEY, title text, genre text);
    CREATE TABLE analytics.copies (film_id int PRIMARY KEY);
    ANALYZE content.film, content.genre, content.film_genre;
    GRANT USAGE ON SCHEMA content, analytics TO vitrina_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA content, analytics TO vitrina_reader`);
});
afterAll(() => api.stop());
beforeEach(() => api.database.forgetPipelines());

const FILMS = `SELECT f.id AS film_id, f.title, g.name AS genre FROM content.film f
  JOIN content.film_genre fg ON fg.film_id = f.id JOIN content.genre g ON g.id = fg.genre_id`;

const films = (more: object = {}) =>
  pipelineBody("films", {
    source_query: FILMS,
    target_table: "analytics.films",
    target_key: ["film_id"],
    mode: "follow",
    ...more,
  });

const save = async (body: object) => {
  const answer = await api.post("/pipelines", body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
};

interface Told {
  code: string;
  severity: string;
  pointer: string;
  message: string;
  hint: string;
}

const problemsOf = async (body: object): Promise<Told[]> =>
  (await api.post("/validate", body)).body.problems.filter(({ code }: Told) => /FOLLOW|CHANGES_NOT/.test(code));

const script = async (query = ""): Promise<string> => {
  const response = await fetch(`${api.url}/api/v1/sources/main/follow/script${query}`);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
  return text;
};

describe("the plan", () => {
  it("shows for each table how its changes find their keys, what is recorded, and which index is missing", async () => {
    await save(films());
    const { status, body } = await api.get("/pipelines/films/follow/plan");
    expect(status).toBe(200);
    expect(body).toMatchObject({ pipeline: "films", key: ["film_id"], refusals: [] });
    const tables = new Map(body.tables.map((one: { table: string }) => [one.table, one]));
    expect([...tables.keys()].sort()).toEqual(["content.film", "content.film_genre", "content.genre"]);
    expect(tables.get("content.genre")).toMatchObject({
      on_change: "keys",
      statement: expect.stringContaining("changed(content.genre)"),
      recorded_columns: [{ name: "id", type: "integer" }],
      recording: "missing",
      missing_indexes: ["CREATE INDEX ON content.film_genre (genre_id)"],
    });
    expect(tables.get("content.film")).toMatchObject({ missing_indexes: [] });
    expect(body.query_for_keys).toContain("…");
  });

  it("wants one index of the columns that are compared together, of that comparison which finds the rows", async () => {
    await api.database.query(`
      CREATE TABLE content.sale (region text, id integer, buyer integer, PRIMARY KEY (region, id));
      CREATE TABLE content.line (id integer PRIMARY KEY, region text, sale_id integer, sku text, sku2 text);
      CREATE TABLE content.product (sku text PRIMARY KEY, name text);
      INSERT INTO content.sale SELECT 'r' || g % 3, g, g FROM generate_series(1, 500) g;
      INSERT INTO content.line SELECT g, 'r' || g % 3, g % 500, 's' || g % 900, 't' FROM generate_series(1, 12000) g;
      ANALYZE content.sale, content.line;
      GRANT SELECT ON ALL TABLES IN SCHEMA content TO vitrina_reader`);
    const missing = async (query: string, key: string[]): Promise<Record<string, string[]>> => {
      await api.database.forgetPipelines();
      await save(films({ source_query: query, target_key: key }));
      const { body } = await api.get("/pipelines/films/follow/plan");
      return Object.fromEntries(
        body.tables.map((one: { table: string; missing_indexes: string[] }) => [one.table, one.missing_indexes]),
      );
    };
    const byLine = `SELECT l.id, l.sku2, s.buyer FROM content.line l
      JOIN content.sale s ON s.region = l.region AND s.id = l.sale_id`;
    const together = "CREATE INDEX ON content.line (region, sale_id)";
    expect(await missing(byLine, ["id"])).toMatchObject({ "content.sale": [together] });
    // From the product to its lines; what these are joined to afterwards needs no index of theirs.
    const bySale = `SELECT s.buyer, s.id, array_agg(p.name ORDER BY p.sku) AS names FROM content.sale s
      JOIN content.line l ON l.region = s.region AND l.sale_id = s.id
      JOIN content.product p ON p.sku = l.sku GROUP BY s.buyer, s.id`;
    expect(await missing(bySale, ["buyer", "id"])).toMatchObject({
      "content.product": ["CREATE INDEX ON content.line (sku)"],
    });
    await api.database.query("CREATE INDEX ON content.line (sale_id, region)");
    expect(await missing(byLine, ["id"])).toMatchObject({ "content.sale": [] });
  });

  it("wants an index that the statement then uses, and says where none would help", async () => {
    await api.database.query(`
      CREATE TABLE content.visit (id integer PRIMARY KEY, kind text, person integer, code varchar(20));
      CREATE TABLE content.place (code text, name text);
      INSERT INTO content.visit SELECT g, 'k' || g % 2, nullif(g % 6000, 0), 'Code ' || g FROM generate_series(1, 12000) g;
      INSERT INTO content.place SELECT 'Code ' || g, 'n' FROM generate_series(1, 500) g;
      ANALYZE content.visit, content.place;
      GRANT SELECT ON ALL TABLES IN SCHEMA content TO vitrina_reader`);
    const planned = async (query: string): Promise<Record<string, { missing: string[]; whole: string[] }>> => {
      await api.database.forgetPipelines();
      await save(films({ source_query: query, target_key: ["id"] }));
      const { body } = await api.get("/pipelines/films/follow/plan");
      const tables = body.tables as { table: string; missing_indexes: string[]; whole_tables: string[] }[];
      return Object.fromEntries(
        tables.map(({ table, missing_indexes: missing, whole_tables: whole }) => [table, { missing, whole }]),
      );
    };
    // A bitmap of an index is made for each part of an OR: only its first column counts, and each kind has half of all rows.
    const window = "SELECT v.id, count(*) OVER (PARTITION BY v.kind, v.person) AS n FROM content.visit v";
    expect(await planned(window)).toMatchObject({
      "content.visit": { missing: ["CREATE INDEX ON content.visit (person)"], whole: [] },
    });
    await api.database.query("CREATE INDEX ON content.visit (person); ANALYZE content.visit");
    expect(await planned(window)).toMatchObject({ "content.visit": { missing: [], whole: [] } });

    const joined = (by: string) => `SELECT v.id, p.name FROM content.visit v LEFT JOIN content.place p ON ${by}`;
    // A varchar is compared as a text, and its index serves that; what is computed from a column has none.
    expect(await planned(joined("p.code = v.code"))).toMatchObject({
      "content.place": { missing: ["CREATE INDEX ON content.visit (code)"], whole: [] },
    });
    const computed = await planned(joined("upper(v.code) = p.code"));
    expect(computed["content.place"]).toEqual({
      missing: [],
      whole: [expect.stringContaining("All of content.visit is read. No index of its columns helps")],
    });
    const told = await problemsOf(films({ source_query: joined("upper(v.code) = p.code"), target_key: ["id"] }));
    expect(told).toContainEqual(
      expect.objectContaining({
        code: "FOLLOW_UNINDEXED",
        message: "To find the keys of a change of content.place, all of content.visit is read.",
        hint: expect.stringContaining("compare plain columns"),
      }),
    );
    await api.database.query("CREATE INDEX ON content.visit (code); ANALYZE content.visit");
    expect((await planned(joined("p.code = v.code")))["content.place"]).toEqual({ missing: [], whole: [] });
  });

  it("says where the indexes are there, and so many rows are expected that they are not used", async () => {
    await api.database.query(`
      CREATE TABLE content.kind (id integer PRIMARY KEY, name text);
      CREATE TABLE content.thing (id integer PRIMARY KEY, kind_id integer);
      INSERT INTO content.thing SELECT g, g % 3 FROM generate_series(1, 120000) g;
      CREATE INDEX ON content.thing (kind_id);
      ANALYZE content.thing;
      GRANT SELECT ON ALL TABLES IN SCHEMA content TO vitrina_reader`);
    await save(
      films({
        source_query: "SELECT t.id, k.name FROM content.thing t JOIN content.kind k ON k.id = t.kind_id",
        target_key: ["id"],
      }),
    );
    const { body } = await api.get("/pipelines/films/follow/plan");
    const kind = body.tables.find(({ table }: { table: string }) => table === "content.kind");
    expect(kind).toMatchObject({
      missing_indexes: [],
      whole_tables: [expect.stringContaining("PostgreSQL expects so many of them")],
    });
  });

  it("is shown for a pipeline of another mode, too, as if it followed", async () => {
    await save(films({ mode: "full" }));
    const { body } = await api.get("/pipelines/films/follow/plan");
    expect(body.mode).toBe("full");
    expect(body.tables).toHaveLength(3);
  });
});

describe("validate and saving", () => {
  it("name what the source does not record and the index that is missing; saving only warns", async () => {
    const found = await problemsOf(films());
    expect(found.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
      "error CHANGES_NOT_RECORDED",
      "warning FOLLOW_UNINDEXED",
      "warning FOLLOW_UNCERTAIN",
    ]);
    expect(found[0]?.hint).toContain("vitrina follow script main");
    expect(found[1]?.hint).toContain("CREATE INDEX ON content.film_genre (genre_id)");
    const { warnings } = await save(films());
    expect(warnings.map(({ code }: Told) => code)).toEqual(["CHANGES_NOT_RECORDED", "FOLLOW_UNCERTAIN"]);
  });

  it("warn where nothing ever compares the whole mart, with the line to add", async () => {
    const ofSweep = (found: Told[]) => found.filter(({ pointer }) => pointer === "/sweep");
    const hint = expect.stringMatching(/^Add sweep: "7d"/);
    expect(ofSweep(await problemsOf(films()))).toMatchObject([{ code: "FOLLOW_UNCERTAIN", severity: "warning", hint }]);
    expect(ofSweep(await problemsOf(films({ sweep: "7d" })))).toEqual([]);
    expect(ofSweep(await problemsOf(films({ mode: "full" })))).toEqual([]);
  });

  it("warn of a publication that would carry the table of changes along, and say what to do about it", async () => {
    await api.database.query("CREATE PUBLICATION everything FOR ALL TABLES");
    try {
      const found = await problemsOf(films());
      expect(found).toContainEqual(
        expect.objectContaining({
          code: "FOLLOW_SIDE_EFFECT",
          severity: "warning",
          hint: expect.stringMatching(/^Tell the owner of the source/),
          message: expect.stringMatching(
            /^The publication everything is FOR ALL TABLES, .* Publish the tables or schemas/,
          ),
        }),
      );
    } finally {
      await api.database.query("DROP PUBLICATION everything");
    }
  });

  it("ask nothing of anybody where Vitrina prepares the source itself, as npm start does", async () => {
    const { settings, urls } = api.database;
    const own = await startApi(
      settings,
      urls,
      createLog({ level: "silent" }),
      undefined,
      ownConnections(settings, urls),
    );
    try {
      const post = async (path: string) => {
        const init = { method: "POST", headers: JSON_TYPE, body: JSON.stringify(films()) };
        return (await fetch(`${own.url}/api/v1${path}`, init)).json();
      };
      const [checked] = ((await post("/validate")) as { problems: Told[] }).problems;
      const [saved] = ((await post("/pipelines")) as { warnings: Told[] }).warnings;
      for (const told of [checked, saved]) {
        expect(told).toMatchObject({ code: "CHANGES_NOT_RECORDED", severity: "warning" });
        expect(told?.hint).toContain("the next run installs what is missing");
        expect(told?.hint).not.toContain("follow script");
      }
    } finally {
      await own.stop();
    }
  });

  it("refuse what cannot be derived, with the way out, also when only the mode changes", async () => {
    const limited = films({ source_query: `${FILMS} ORDER BY f.id LIMIT 10` });
    const [refusal] = await problemsOf(limited);
    expect(refusal).toMatchObject({
      code: "FOLLOW_REFUSED",
      severity: "error",
      pointer: "/source_query",
      message: expect.stringMatching(/LIMIT/),
      hint: "Say under follow.tables how its changes find their keys, or on_change: everything.",
      line: 1,
      column: FILMS.indexOf("content.film f") + 1,
    });
    const refused = await api.post("/pipelines", limited);
    expect(refused.status).toBe(422);
    expect(Object.values(errorsOf(refused))).toEqual([refusal?.message]);
    await save({ ...limited, mode: "full" });
    const { body } = await api.get("/pipelines/films/follow/plan");
    const places = body.refusals.map(({ table, line, column }: Record<string, unknown>) => [table, line, column]);
    expect(places).toContainEqual(["content.film_genre", 2, "  JOIN ".length + 1]);
    expect((await api.patch("/pipelines/films", { mode: "follow" })).status).toBe(422);
  });

  it.each([
    ["SELECT c.film_id FROM changed c WHERE pg_terminate_backend(c.film_id)", /pg_terminate_backend/],
    ["SELECT c.film_id FROM changed c, pg_catalog.pg_sleep(1)", /pg_sleep/],
    ["SELECT c.film_id FROM changed c JOIN pg_catalog.pg_user u ON true", /pg_catalog/],
    ["SELECT c.film_id FROM changed c JOIN etl.etl_pipelines p ON true", /etl/],
    ["SELECT c.film_id FROM changed c FOR UPDATE", /FOR UPDATE/],
    ["SELECT c.film FROM changed c", /^The keys of content\.film_genre are refused: column c\.film does not exist\.$/],
  ])("refuse keys under follow.tables that touch more than a query may: %s", async (keys, why) => {
    const body = films({ follow: { tables: { "content.film_genre": { keys } } } });
    expect(await problemsOf(body)).toEqual([
      expect.objectContaining({
        code: "FOLLOW_REFUSED",
        severity: "error",
        pointer: "/follow/tables",
        message: expect.stringMatching(why),
      }),
    ]);
    expect((await api.post("/pipelines", body)).status).toBe(422);
  });

  it("say what may stand under a table of follow.tables", async () => {
    const refused = await api.post(
      "/pipelines",
      films({ follow: { tables: { "content.film": { on_changes: "x" } } } }),
    );
    expect(refused.status).toBe(422);
    expect(Object.values(errorsOf(refused))).toEqual([expect.stringMatching(/^Give one of these.*key_columns.*keys/)]);
  });

  it("refuse a mart that would follow itself, within one request, too", async () => {
    const copies = pipelineBody("copies", {
      source_query: "SELECT film_id FROM analytics.films",
      target_table: "analytics.copies",
      target_key: ["film_id"],
      mode: "follow",
    });
    const circular = films({ source_query: "SELECT c.film_id, '' AS title, '' AS genre FROM analytics.copies c" });
    const refused = await api.post("/apply", { pipelines: [copies, circular] });
    expect(refused.status).toBe(422);
    expect(Object.values(errorsOf(refused))).toContainEqual(expect.stringMatching(/is made from itself: /));
    await save(films());
    await save(copies);
    expect((await problemsOf(circular)).map(({ code, severity }) => `${severity} ${code}`)).toContain(
      "error FOLLOW_CYCLE",
    );
  });
});

describe("the script", () => {
  it("lets the source record what all pipelines need; run twice, it is complete; removed, nothing is left", async () => {
    await save(films());
    expect(await script("?diff=true")).not.toBe("");
    const text = await script();
    await api.database.query(text);
    await api.database.query(text);
    expect(await problemsOf(films({ sweep: "7d" }))).toMatchObject([{ code: "FOLLOW_UNINDEXED" }]);
    const { body } = await api.get("/pipelines/films/follow/plan");
    expect(body.tables.map(({ recording }: { recording: string }) => recording)).toEqual(Array(3).fill("recorded"));

    await save(
      films({ name: "noted", source_query: "SELECT f.id AS film_id, f.title, f.note AS genre FROM content.film f" }),
    );
    const { body: noted } = await api.get("/pipelines/noted/follow/plan");
    expect(noted.tables).toMatchObject([
      { recording: "missing", recording_problem: expect.stringContaining("without note") },
    ]);

    await api.database.query(await script("?remove=true"));
    const [left] = await api.database.query("SELECT count(*)::int AS n FROM pg_trigger WHERE tgname LIKE 'vitrina%'");
    expect(left).toEqual({ n: 0 });
    expect((await problemsOf(films())).map(({ code }) => code)).toContain("CHANGES_NOT_RECORDED");
  });

  it("leaves out a pipeline that is broken, and names it with the reason", async () => {
    await api.database.query("CREATE TABLE content.passing (film_id int PRIMARY KEY)");
    await api.database.query("GRANT SELECT ON content.passing TO vitrina_reader");
    const passing = pipelineBody("passing", {
      source_query: "SELECT film_id FROM content.passing",
      target_table: "analytics.copies",
      target_key: ["film_id"],
      mode: "follow",
    });
    await save(films());
    await save(passing);
    await api.database.query("DROP TABLE content.passing");
    const text = await script();
    expect(text).toMatch(/^-- Without passing: .*content\.passing.*\n-- Lets Vitrina follow/);
    expect(text).toContain("content.genre");
    expect(await script("?diff=true")).toMatch(/^-- Without passing: /);
    await api.database.query(text);
    expect((await api.get("/pipelines/films/follow/plan")).body.tables).toMatchObject(
      Array(3).fill({ recording: "recorded" }),
    );
    await api.database.query(await script("?remove=true"));
    await api.delete("/pipelines/films");
    const both = await api.get("/sources/main/follow/script?diff=true&remove=true");
    expect(both).toMatchObject({ status: 422, body: { errors: [{ message: "Ask for either diff or remove." }] } });
    const alone = await api.get("/sources/main/follow/script");
    expect(alone).toMatchObject({ status: 422, body: { code: "FOLLOW_REFUSED" } });
    expect(alone.body.detail).toMatch(/^Without passing: /);
  });

  it("goes on recording the columns that only a pipeline needs that is broken for a while", async () => {
    await api.database.query("CREATE TABLE content.passing (film_id int PRIMARY KEY)");
    await api.database.query("GRANT SELECT ON content.passing TO vitrina_reader");
    await save(films());
    const noted = "SELECT f.id AS film_id, f.title, f.note AS genre FROM content.film f";
    const source_query = `${noted} WHERE EXISTS (SELECT FROM content.passing p WHERE p.film_id = f.id)`;
    await save(films({ name: "noted", target_table: "analytics.noted", source_query }));
    await api.database.query(await script());
    const recorded = () => api.database.query("SELECT relation, columns, body_md5 FROM vitrina.tables ORDER BY 1");
    const before = await recorded();
    expect(JSON.stringify(before)).toContain('"note"');
    await api.database.query("REVOKE SELECT ON content.passing FROM vitrina_reader");
    const lacking = await script("?diff=true");
    expect(lacking).toMatch(/^-- Without noted: /);
    expect(lacking).not.toMatch(/No pipeline (needs|follows)/);
    await api.database.query(lacking);
    await api.database.query(await script());
    expect(await recorded()).toEqual(before);
    await api.database.query(`DROP TABLE content.passing; ${await script("?remove=true")}`);
    await api.delete("/pipelines/noted");
  });

  it("stops recording what no pipeline follows any more, and nothing while one is left out", async () => {
    const names = async (): Promise<unknown[]> =>
      (await api.database.query("SELECT relation FROM vitrina.tables ORDER BY 1")).map(({ relation }) => relation);
    await save(films());
    await api.database.query(await script());
    await api.delete("/pipelines/films");
    await api.database.query("CREATE TABLE content.passing (film_id int PRIMARY KEY)");
    await api.database.query("GRANT SELECT ON content.passing TO vitrina_reader");
    const passing = { source_query: "SELECT film_id FROM content.passing", target_table: "analytics.copies" };
    await save(pipelineBody("passing", { ...passing, target_key: ["film_id"], mode: "follow" }));
    await save(films({ source_query: "SELECT f.id AS film_id, f.title, '' AS genre FROM content.film f" }));
    await api.database.query("DROP TABLE content.passing");
    const guarded = await script("?diff=true");
    expect(guarded).toContain("-- Nothing is taken away while a pipeline is left out");
    await api.database.query(guarded);
    expect(await names()).toEqual(["content.film", "content.film_genre", "content.genre"]);

    await api.delete("/pipelines/passing");
    // The whole script is kept in files, and may be older than a pipeline.
    await api.database.query(await script());
    expect(await names()).toHaveLength(3);
    const lacking = await script("?diff=true");
    expect(lacking).toMatch(
      /^-- No pipeline follows content\.film_genre any more: the end of this script takes it out/m,
    );
    await api.database.query(lacking);
    await api.database.query(lacking);
    expect(await names()).toEqual(["content.film"]);
    expect(await script("?diff=true")).toBe("-- The source records everything that its pipelines need.\n");
    await api.delete("/pipelines/films");
    await api.database.query(await script("?diff=true"));
    expect(await names()).toEqual([]);
    await api.database.query(await script("?remove=true"));
    expect(await script("?diff=true")).toBe("-- The source records everything that its pipelines need.\n");
  });

  it("says that nobody follows a source", async () => {
    const answer = await api.get("/sources/main/follow/script");
    expect(answer).toMatchObject({ status: 422, body: { code: "NOT_SUPPORTED" } });
  });
});

describe("the status", () => {
  it("is that of a pipeline that has not begun to follow", async () => {
    await save(films());
    expect((await api.get("/pipelines/films/follow")).body).toMatchObject({
      pipeline: "films",
      connection: "main",
      status: "IDLE",
      enabled: true,
      following: false,
      position: null,
      lag_seconds: null,
      changes_waiting: null,
      repaired: 0,
    });
  });

  it("counts what is recorded and not in the mart, and how old it is", async () => {
    const { id } = await save(films());
    await api.database.query(await script());
    const [now] = await api.database.query("SELECT pg_current_snapshot()::text AS snapshot");
    const position = JSON.stringify({ snapshot: now?.["snapshot"], fingerprint: {}, lastChange: null });
    await api.database.query(
      `INSERT INTO etl.follow_state (pipeline_id, position, fingerprint, tables) VALUES ($1, $2, 'x', '{content.genre}')`,
      [id, position],
    );
    const waiting = async () => (await api.get("/pipelines/films/follow")).body;
    expect(await waiting()).toMatchObject({ following: true, changes_waiting: 0, lag_seconds: 0 });
    await api.database.query("UPDATE content.genre SET name = 'other ' || id WHERE id <= 3");
    await api.database.query("UPDATE content.film SET title = 'other' WHERE id = 1");
    const { changes_waiting, lag_seconds } = await waiting();
    expect(changes_waiting).toBe(3);
    expect(lag_seconds).toBeGreaterThan(0);
    await api.database.query(await script("?remove=true"));
    const note = "The source does not record its changes.";
    expect(await waiting()).toMatchObject({ changes_waiting: null, lag_seconds: null, note });
  });

  it("says that no change starts a run for a while after many whole compares", async () => {
    const { id } = await save(films());
    await api.database.query(await script());
    const position = JSON.stringify({ snapshot: "1:1:", fingerprint: {}, lastChange: null });
    await api.database.query(
      `INSERT INTO etl.follow_state (pipeline_id, position, fingerprint, tables, compares, last_compare_at)
       VALUES ($1, $2, 'x', '{content.genre}', 9, clock_timestamp())`,
      [id, position],
    );
    const note = async (): Promise<unknown> => (await api.get("/pipelines/films/follow")).body.note;
    expect(await note()).toMatch(
      /no change starts a run before \d\d:\d\d:\d\d UTC\. vitrina run films starts one now\.$/,
    );
    await api.database.query("UPDATE etl.follow_state SET compares = 1");
    expect(await note()).toBeNull();
  });

  it("is refused for a pipeline of another mode", async () => {
    await save(films({ mode: "full" }));
    expect(await api.get("/pipelines/films/follow")).toMatchObject({ status: 422, body: { code: "NOT_SUPPORTED" } });
  });
});
