import { beforeAll, describe, expect, it } from "vitest";
import type { Row } from "../../src/domain/row.ts";
import { BOTH_LANGUAGES } from "./languages.ts";
import { applyOnce, columnsOf, hasPython, loadHost, neverAborted, type TestHost } from "./task-folder.ts";

const TYPES = { n: "integer", title: "text" };
const ROWS: readonly Row[] = [
  ["1", "a"],
  ["2", "b"],
  ["3", "c"],
];

const FILES = hasPython ? BOTH_LANGUAGES : { "all.mjs": BOTH_LANGUAGES["all.mjs"] };

describe.each(["TYPESCRIPT", "PYTHON"] as const)("a task in %s", (language) => {
  const claim = it.skipIf(language === "PYTHON" && !hasPython);
  let host: TestHost;
  beforeAll(async () => {
    host = await loadHost(FILES);
  });
  const run = (name: string, types: Record<string, string> = TYPES, rows = ROWS, params: unknown = {}) =>
    applyOnce(host, language, name, types, rows, params);

  claim("R2.4 is listed with its description and the schema of its parameters", async () => {
    const listed = host.list().filter((task) => task.language === language);
    expect(listed.map(({ name }) => name)).toContain("same");
    expect(listed.find(({ name }) => name === "longer")?.params).toMatchObject({
      type: "object",
      required: ["times"],
      properties: { times: { type: "integer" }, tail: { type: "string", default: "!" } },
      additionalProperties: false,
    });
  });

  claim("says that its trouble passes, and how long to wait at least", async () => {
    await expect(run("later")).rejects.toMatchObject({
      code: "TASK_RETRY_LATER",
      retry: "wait",
      message: "Task later asks to be tried again later: the rates are not there yet",
      delayMs: 90_000,
    });
  });

  claim("R2.4 maps rows with its parameters", async () => {
    expect(await run("longer", TYPES, ROWS, { times: 2 })).toEqual([
      ["1", "a!!"],
      ["2", "b!!"],
      ["3", "c!!"],
    ]);
  });

  claim("R2.4 drops and splits rows, all of them if it likes", async () => {
    expect(await run("odd")).toEqual([ROWS[0], ROWS[2]]);
    expect(await run("twice", TYPES, ROWS.slice(0, 1))).toEqual([ROWS[0], ["-1", "a"]]);
    expect(await run("none")).toEqual([]);
    expect(await run("same", TYPES, [])).toEqual([]);
  });

  claim("R2.4 tells its columns before a row is read", async () => {
    const added = await host.open({ language, name: "added", params: {} }, columnsOf(TYPES));
    expect(added.columns).toEqual(columnsOf({ n: "bigint", title: "text", bucket: "text" }));
    expect(await added.apply(ROWS.slice(0, 1), neverAborted)).toEqual([["9007199254740993", "a", "b"]]);
    expect(await run("only_title")).toEqual([["a"], ["b"], ["c"]]);
  });

  claim.each(["same", "copied"])("R2.4 gives every value back as it came (%s)", async (name) => {
    const values: Record<string, [type: string, text: string | null]> = {
      yes: ["boolean", "t"],
      small: ["smallint", "-32768"],
      big: ["bigint", "-9223372036854775808"],
      float: ["double precision", "0.1"],
      not_a_number: ["real", "NaN"],
      endless: ["double precision", "-Infinity"],
      amount: ["numeric(30,10)", "12345678901234567890.1234567890"],
      zero: ["numeric", "0.0000000000"],
      hundreds: ["numeric(5,-2)", "12300"],
      own_type: ['"Sales Dept"."o\'k-ish"', "glad"],
      at: ["timestamp with time zone", "2024-02-29 23:59:59.999999+00"],
      since: ["interval", "1 mon -00:00:00.000001"],
      json: ["jsonb", '{"n": 12345678901234567890, "ё": "\\u2028"}'],
      names: ["text[]", '{"a b",NULL,"NULL","\\"\\\\",😀}'],
      ids: ["bigint[]", "{9007199254740993,NULL}"],
      amounts: ["numeric(5,2)[]", "{1.50,NaN}"],
      grid: ["integer[]", "{{1,2},{3,4}}"],
      bytes: ["bytea", "\\x00ff"],
      emoji: ["text", 'Ёлка 👩‍👩‍👧 "\\\n\t\u2028'],
      nothing: ["text", null],
      no_number: ["bigint", null],
    };
    const types = Object.fromEntries(Object.entries(values).map(([column, [type]]) => [column, type]));
    const row = Object.values(values).map(([, text]) => text);
    expect(await run(name, types, [row, row.map(() => null)])).toEqual([row, row.map(() => null)]);
  });

  claim("R2.4 takes 10,000 rows at once", async () => {
    const rows = Array.from({ length: 10_000 }, (_, n) => [String(n), `Фильм № ${n} 🎬`]);
    expect(await run("copied", TYPES, rows)).toEqual(rows);
    expect(await run("odd", TYPES, rows)).toHaveLength(5000);
  });

  claim.each([
    ["no_rows", /returned \w+ instead of rows/],
    ["a_text", /instead of rows|row 1/],
    ["no_objects", /row 1: it is not/],
    ["missing", /row 2, column "title": there is no value/],
    ["undeclared", /row 1, column "extra": the task does not declare/],
    ["wrong_type", /row 3, column "title": expected (text|str), got (number|int)/],
    ["with_nul", /row 1, column "title": it has a NUL/],
    ["half_pair", /row 1, column "title": it has half of a surrogate pair/],
    ["twin_columns", /"bucket" appears twice/],
    ["no_columns", /there are none/],
    ["injected", /"x" has no PostgreSQL type/],
  ])("R2.4 %s is refused with the row and the column", async (name, message) => {
    const failure = { code: "TASK_RESULT_INVALID", retry: "never", message: expect.stringMatching(message) };
    await expect(run(name)).rejects.toMatchObject(failure);
  });

  claim("R2.4 an exception shows the author's own lines, and the next batch works", async () => {
    const error = await run("raises").catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: "TASK_FAILED", retry: "never" });
    expect(String(error)).toMatch(/Task raises failed:\s[\s\S]*TypeError: no \{n\} 3/);
    expect(String(error)).toMatch(/dive/);
    expect(String(error)).not.toMatch(/vitrina_tasks|src\/tasks/);
    expect(await run("same")).toEqual(ROWS);
  });

  claim.each(["nope", "../all", "all.py", "os.system", "__import__('os')", "constructor", "__proto__", ""])(
    "R2.4 the name %j is unknown",
    async (name) => {
      const unknown = { code: "TASK_UNKNOWN", retry: "never", message: expect.stringContaining("same") };
      await expect(run(name)).rejects.toMatchObject(unknown);
    },
  );

  claim.each([
    [{}, "/times"],
    [{ times: "2" }, "/times"],
    [{ times: true }, "/times"],
    [{ times: 2, tail: 3 }, "/tail"],
    [{ times: 2, tial: "?" }, /^$|\/tial/],
    [[], ""],
    [null, ""],
  ])("R2.4 the parameters %j are refused before anything is read", async (params, pointer) => {
    const pointerText = typeof pointer === "string" ? pointer : expect.stringMatching(pointer);
    await expect(run("longer", TYPES, [], params)).rejects.toMatchObject({
      code: "TASK_PARAMS_INVALID",
      retry: "never",
      problems: [{ pointer: pointerText }],
    });
  });
});
