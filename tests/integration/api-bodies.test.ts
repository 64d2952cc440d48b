import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Answer,
  errorsOf,
  expectProblem,
  JSON_TYPE,
  pipelineBody,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

const sendBody = (body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = JSON_TYPE): Promise<Answer> =>
  api.send("/api/v1/pipelines", { method: "POST", body, headers });

describe("a body that cannot be read", () => {
  it.each([
    ["cut off", '{"name":', "The body is not valid JSON: Unexpected end of JSON input."],
    ["without quotes", "{name: 1}", /^The body is not valid JSON: .*position 1/],
    ["not UTF-8", Buffer.from([0x22, 0xe4, 0x22]), "The body is not valid JSON: It is not UTF-8."],
    ["a NUL byte", Buffer.from([0x22, 0x00, 0x22]), /^The body is not valid JSON: /],
  ])("R3.6 answers 400: %s", async (_, body, detail) => {
    const answer = await sendBody(body);
    expectProblem(answer, "MALFORMED_REQUEST");
    expect(answer.body.detail).toMatch(detail);
  });

  it.each([
    ["no body", undefined],
    ["an empty body", ""],
    ["null", "null"],
    ["a list", "[]"],
    ["a text", '"film_dim"'],
  ])("answers 422: %s", async (_, body) => {
    const answer = body === undefined ? await api.post("/pipelines") : await sendBody(body);
    expectProblem(answer, "INVALID_REQUEST");
    expect(answer.body.detail).toBe("The body is not valid. It must be a JSON object.");
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/xml", "nonsense"])(
    "answers 415: %s",
    async (type) => {
      expectProblem(await sendBody("{}", { "content-type": type }), "UNSUPPORTED_MEDIA_TYPE");
    },
  );

  it("takes JSON with a charset or a byte order mark", async () => {
    for (const answer of [
      await sendBody("{}", { "content-type": "application/json; charset=utf-8" }),
      await sendBody("\ufeff{}"),
    ]) {
      expect(Object.keys(errorsOf(answer))).toEqual(["/name", "/target_table", "/source_query"]);
    }
  });

  it.each([300_000, 20_000_000])("answers 413: %i bytes", async (size) => {
    const answer = await sendBody(JSON.stringify({ description: "x".repeat(size) }));
    expectProblem(answer, "BODY_TOO_LARGE");
    expect(answer.body.detail).toBe("The body is larger than 256 KiB.");
  });
});

describe("a body that is not valid", () => {
  it("R3.6 answers 422 with a pointer and a plain sentence for every field", async () => {
    const answer = await api.post("/pipelines", {
      id: "x",
      name: 5,
      description: null,
      type: "PERL",
      source_type: "mysql",
      source_connection: "My DB",
      source_query: 1,
      target_table: "",
      target_key: ["a", "a", ""],
      create_target: "yes",
      incremental_key: 5,
      batch_size: "many",
      enabled: 1,
      tasks: [{ order_index: 1.5, task_type: "SQL" }, 5],
      "a/b~c": 1,
    });
    expectProblem(answer, "INVALID_REQUEST");
    expect(errorsOf(answer)).toEqual({
      "/id": "It must be a UUID.",
      "/name": "It must be text.",
      "/description": "It must be text.",
      "/type": "It must be one of SQL, PYTHON, TYPESCRIPT.",
      "/source_type": "It must be postgres.",
      "/source_connection": "A connection name has lower-case letters, digits and underscores.",
      "/source_query": "It must be text.",
      "/target_table": "It must not be empty.",
      "/target_key": "A key names each column once.",
      "/target_key/2": "A column name is not empty.",
      "/create_target": "It must be true or false.",
      "/incremental_key": "It must be text.",
      "/batch_size": "It must be a whole number.",
      "/enabled": "It must be true or false.",
      "/tasks/0/order_index": "It must be a whole number.",
      "/tasks/0/body": "It is required.",
      "/tasks/1": "It must be a JSON object.",
      "/a~1b~0c": "Nothing of that name can be set here.",
    });
    expect(answer.body.detail).toMatch(/^The body is not valid\. \/name: It must be text\. .* And 13 more\.$/);
  });

  it.each<[string, unknown, string | RegExp]>([
    ["batch_size", 0, "It must be at least 1."],
    ["batch_size", 100_001, "It must be at most 100000."],
    ["batch_size", 1e20, "It must be at most 100000."],
    ["batch_size", 1.5, "It must be a whole number."],
    ["description", "x".repeat(2001), "It must have at most 2000 characters."],
    ["target_key", Array.from({ length: 33 }, (_, index) => `c${index}`), "It must have at most 32 items."],
    [
      "name",
      "x".repeat(200_000),
      "A name starts with a letter and has up to 63 letters, digits, dots, dashes and underscores.",
    ],
    ["name", "abcdefab-1111-1111-1111-111111111111", "A name must not look like an id."],
    ["schedule_interval", "1s 2s", /^"1s 2s" is not cron: .*\.$/],
    [
      "target_table",
      "content.film_work",
      "content.film_work is not an allowed target; allowed are: analytics.<table>.",
    ],
  ])("says it plainly: %s", async (field, value, message) => {
    const answer = await api.post("/pipelines", pipelineBody("film_dim", { [field]: value }));
    expectProblem(answer, "INVALID_REQUEST");
    expect(errorsOf(answer)).toEqual({
      [`/${field}`]: typeof message === "string" ? message : expect.stringMatching(message),
    });
  });

  it.each([
    ["__proto__", '{"__proto__": {"name": "x"}}', "/__proto__"],
    ["constructor", '{"constructor": {"prototype": {"name": "x"}}}', "/constructor"],
    ["a key of 100,000 characters", `{"${"k".repeat(100_000)}": 1}`, `/${"k".repeat(100_000)}`],
    [
      "20,000 unknown keys",
      JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [n, n]))),
      "/19999",
    ],
  ])("is not shaken by %s", async (_, body, pointer) => {
    const answer = await sendBody(body);
    expectProblem(answer, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(answer))).toContain(pointer);
    expect(answer.body.detail.length).toBeLessThan(1000);
  });

  it.each([
    ["40,000 nested objects", `${'{"a":'.repeat(40_000)}1${"}".repeat(40_000)}`],
    ["100,000 nested lists in a field", `{"tasks": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    ["33 levels", `${"[".repeat(33)}${"]".repeat(33)}`],
  ])("answers 400 to %s", async (_, body) => {
    const answer = await sendBody(body);
    expectProblem(answer, "MALFORMED_REQUEST");
    expect(answer.body.detail).toBe("The body is nested deeper than 32 levels.");
  });

  it.each([
    ["twice", '{"name": "a", "name": "b"}', "/name"],
    ["twice, written differently", '{"name": "a", "n\\u0061me": "b"}', "/name"],
    ["twice in a list of objects", '{"tasks": [{}, {"body": "{\\"body\\":", "body": "[,"}]}', "/tasks/1/body"],
  ])("refuses a key that is set %s, instead of ignoring one", async (_, body, pointer) => {
    const answer = await sendBody(body);
    expectProblem(answer, "INVALID_REQUEST");
    expect(errorsOf(answer)).toEqual({ [pointer]: "It is set twice." });
  });

  it("takes the same key in two objects, and keys that are only mentioned in texts", async () => {
    const task = { order_index: 1, task_type: "SQL", body: 'SELECT \'{"body": 1, "body": 2}\' AS "id"' };
    const answer = await api.post("/pipelines", pipelineBody("twice", { tasks: [task, { ...task, order_index: 2 }] }));
    expect(answer.text).not.toContain("set twice");
  });

  it("refuses __proto__ however deep, and no prototype is changed", async () => {
    const answer = await sendBody('{"tasks": [{"__proto__": {"polluted": true}}]}');
    expectProblem(answer, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(answer))).toEqual(["/tasks/0/__proto__"]);
    expect("polluted" in {}).toBe(false);
  });

  const texts = ["name", "description", "source_connection", "source_query", "target_table", "incremental_key"];
  it.each([...texts, "schedule_interval"])("refuses what PostgreSQL cannot store in %s", async (field) => {
    for (const text of ["a\0b", "a\ud800b", "\udc00"]) {
      const answer = await api.post("/pipelines", pipelineBody("film_dim", { [field]: text }));
      expectProblem(answer, "INVALID_REQUEST");
      expect(Object.keys(errorsOf(answer))).toEqual([`/${field}`]);
    }
  });

  it("refuses what PostgreSQL cannot store in lists and tasks", async () => {
    const task = { order_index: 1, task_type: "SQL\0", body: "SELECT '\ud800'", source_table: "\0" };
    const answer = await api.post("/pipelines", pipelineBody("film_dim", { target_key: ["a\udfff"], tasks: [task] }));
    expectProblem(answer, "INVALID_REQUEST");
    expect(Object.keys(errorsOf(answer))).toEqual([
      "/target_key/0",
      "/tasks/0/task_type",
      "/tasks/0/body",
      "/tasks/0/source_table",
    ]);
  });
});
