import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { pipelineBody, startTestApi, type TestApi } from "../support/api-client.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({
    SOURCE_AWAY_URL: "postgres://nobody:x@127.0.0.1:1/away",
    SOURCE_SCHEMAS: "content,analytics",
  });
  await api.database.query(`CREATE SCHEMA IF NOT EXISTS content;
    CREATE TABLE content.film (id int PRIMARY KEY, title text);
    CREATE TABLE content.genre (id int PRIMARY KEY, name text);
    CREATE TABLE analytics.one (id int PRIMARY KEY);
    CREATE TABLE analytics.two (id int PRIMARY KEY);
    CREATE VIEW content.both AS SELECT f.id FROM content.film f JOIN content.genre g USING (id);
    CREATE VIEW content.seen AS SELECT id FROM analytics.one;
    GRANT USAGE ON SCHEMA content, analytics TO vitrina_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA content, analytics TO vitrina_reader`);
});
afterAll(() => api.stop());
beforeEach(() => api.database.forgetPipelines());

const mart = (name: string, table: string, more: object = {}) =>
  pipelineBody(name, { target_table: `analytics.${name}`, source_query: `SELECT id FROM ${table}`, ...more });

const save = async (body: object): Promise<void> => {
  const answer = await api.post("/pipelines", body);
  expect(answer.status, answer.text).toBe(201);
};

describe("the graph", () => {
  it("shows what each mart is made from and who reads it, through views, in every mode", async () => {
    await save(mart("one", "content.both"));
    await save(mart("two", "content.seen", { mode: "incremental", incremental_key: "id" }));
    const { status, body } = await api.get("/graph");
    expect({ status, notes: body.notes }).toEqual({ status: 200, notes: [] });
    expect(body.nodes.find(({ id }: { id: string }) => id === "analytics.one")).toEqual({
      id: "analytics.one",
      kind: "mart",
      name: "analytics.one",
      connection: null,
      pipelines: ["one"],
      reads: ["main:content.film", "main:content.genre"],
      read_by: ["analytics.two"],
    });
    expect(body.edges).toContainEqual({
      from: "analytics.one",
      to: "analytics.two",
      pipeline: "two",
      mode: "incremental",
    });
  });

  it("names the source that could not be asked, and shows what the query says", async () => {
    await save(mart("far", "content.film", { source_connection: "away" }));
    const { body } = await api.get("/graph");
    expect(body.notes).toEqual([expect.stringMatching(/^The source "away" did not answer/)]);
    expect(body.edges).toMatchObject([{ from: "away:content.film", to: "analytics.far" }]);
  });
});

describe("a mart that is made from itself", () => {
  const problemsOf = async (body: object) =>
    (await api.post("/validate", body)).body.problems.filter(({ code }: { code: string }) => code === "FOLLOW_CYCLE");

  it("is a warning where each runs only when told to, and says by which pipelines", async () => {
    await save(mart("one", "analytics.two"));
    const two = mart("two", "content.seen");
    expect(await problemsOf(two)).toMatchObject([
      {
        severity: "warning",
        pointer: "/source_query",
        message:
          "analytics.two is made from itself: two makes analytics.two from analytics.one, and one makes analytics.one from analytics.two.",
      },
    ]);
    const saved = await api.post("/pipelines", two);
    expect(saved).toMatchObject({ status: 201, body: { warnings: [{ code: "FOLLOW_CYCLE" }] } });
  });

  it("is none where the mart reads a table of that name in another database", async () => {
    const answer = await api.post("/validate", mart("one", "analytics.one", { source_connection: "away" }));
    expect(answer.text).not.toContain("FOLLOW_CYCLE");
  });

  it("is none where the other pipeline is replaced in the same request", async () => {
    await save(mart("one", "analytics.two"));
    const applied = await api.post("/apply", {
      pipelines: [mart("two", "analytics.one"), mart("one", "content.film")],
    });
    expect(applied.status, applied.text).toBe(200);
    expect(applied.text).not.toContain("FOLLOW_CYCLE");
  });
});

describe("a mart that reads one that is not there yet", () => {
  const first = mart("later", "content.film", { create_target: true });
  const second = mart("two", "analytics.later");
  const why =
    /relation "analytics\.later" does not exist .* analytics\.later is the target of later, which makes it in its first run: apply later alone, run it, then apply the rest\.$/;

  it("is refused with the mart that has to run first, be it saved or in the same request", async () => {
    const together = await api.post("/apply", { pipelines: [first, second] });
    expect(together.status).toBe(422);
    expect(together.body.errors).toEqual([
      { pointer: "/pipelines/1/source_query", message: expect.stringMatching(why), line: 1, column: 16 },
    ]);
    await save(first);
    const alone = await api.post("/pipelines", second);
    expect(alone.body.errors).toEqual([expect.objectContaining({ message: expect.stringMatching(why) })]);
    const [problem] = (await api.post("/validate", second)).body.problems;
    expect(problem).toMatchObject({ code: "SOURCE_QUERY_FAILED", hint: expect.stringContaining("vitrina run later") });
  });

  it("is told nothing of that where nobody makes the table, or something else is wrong", async () => {
    await save(mart("given", "content.film"));
    await save(first);
    for (const query of [
      "SELECT id FROM analytics.given",
      "SELECT id FROM analytics.nobody",
      "SELECT nothing FROM content.film",
    ]) {
      const { body } = await api.post("/pipelines", mart("two", "content.film", { source_query: query }));
      expect(body.errors[0].message, query).not.toContain("is the target of");
    }
  });
});
