import { afterEach, beforeEach, expect, it } from "vitest";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";

let bench: SearchBench;
beforeEach(async () => {
  bench = await openSearchBench();
  await bench.startRunner();
});
afterEach(() => bench.close());

/** The exact text of a document, because JSON.parse would round what must not be rounded. */
async function sourceText(index: string, id: string): Promise<string> {
  const response = await fetch(`${bench.search.url}/${index}/_doc/${id}`);
  return (await response.text()).replace(/^.*?"_source":/s, "").slice(0, -1);
}

it("keeps every type exactly: numbers are not rounded, moments carry their zone, bytes are base64", async () => {
  await bench.query(`
    CREATE TYPE content.mood AS ENUM ('sad', 'ok');
    CREATE TABLE content.kinds AS SELECT 1 AS id,
      9007199254740993::bigint AS big, 12345678901234567890.123456789::numeric AS exact, 8.70::numeric(3,2) AS rating,
      0.1::float8 AS f8, '1.5'::real AS f4, true AS yes, 32767::smallint AS small,
      '2024-02-29 23:59:59.123456+03'::timestamptz AS at, '2024-02-29 12:00:00.000001'::timestamp AS local, '1960-01-02'::date AS day,
      'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS uid, '\\xdeadbeef00'::bytea AS bytes,
      '{"n": 12345678901234567890.123, "a": [1, {"b": null}]}'::jsonb AS doc, E'{"x":\\n 1}'::json AS lines,
      ARRAY['a,b', NULL, '', 'q"q\\', '{}', 'NULL'] AS texts, ARRAY[[1,2],[3,NULL]] AS grid, '{}'::int[] AS none, ARRAY[true,false] AS flags,
      ARRAY['2024-01-01 00:00:00+00'::timestamptz] AS moments, 'ok'::content.mood AS mood, '1 mon -02:03'::interval AS span,
      '10.0.0.1/8'::inet AS net, E'tab\\there \\u0416 😀 "q" \\\\' AS title, NULL::int AS nothing;
    GRANT USAGE ON TYPE content.mood TO vitrina_reader`);
  const pipeline = await bench.createIndex({ source_query: "SELECT * FROM content.kinds", target_key: ["id"] });
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1, rows_rejected: 0 });
  const text = await sourceText(pipeline.index, "1");
  expect(text).toContain('"big":"9007199254740993","exact":"12345678901234567890.123456789","rating":8.70,');
  expect(text).toContain('"doc":{"a": [1, {"b": null}], "n": 12345678901234567890.123}');
  expect(JSON.parse(text)).toMatchObject({
    id: 1,
    f8: 0.1,
    f4: 1.5,
    yes: true,
    small: 32767,
    at: "2024-02-29T20:59:59.123456Z",
    local: "2024-02-29T12:00:00.000001",
    day: "1960-01-02",
    uid: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    bytes: Buffer.from("deadbeef00", "hex").toString("base64"),
    lines: { x: 1 },
    texts: ["a,b", null, "", 'q"q\\', "{}", "NULL"],
    grid: [
      [1, 2],
      [3, null],
    ],
    none: [],
    flags: [true, false],
    moments: ["2024-01-01T00:00:00Z"],
    mood: "ok",
    title: 'tab\there Ж 😀 "q" \\',
    nothing: null,
  });
  const find = async (query: object): Promise<number> => {
    await bench.search.ask("POST", `/${pipeline.index}/_refresh`);
    return (await bench.search.ask("POST", `/${pipeline.index}/_search`, { query })).body.hits.total.value;
  };
  // A 64-bit number is found exactly, and a moment to the microsecond.
  expect(await find({ term: { big: "9007199254740993" } })).toBe(1);
  expect(await find({ term: { big: "9007199254740992" } })).toBe(0);
  expect(await find({ range: { at: { gt: "2024-02-29T20:59:59.123455Z", lt: "2024-02-29T20:59:59.123457Z" } } })).toBe(
    1,
  );
  expect(await find({ range: { at: { gt: "2024-02-29T20:59:59.123456Z" } } })).toBe(0);
  expect(await find({ match: { title: "ж" } })).toBe(1);
  expect(await find({ term: { "doc.a": "1" } })).toBe(1);
});

it("sets rows aside that hold what an index cannot: NaN, infinity, moments that it cannot reach", async () => {
  await bench.query(`CREATE TABLE content.odd AS SELECT * FROM (VALUES
    (1, 1.5::numeric, '2024-01-01 00:00:00+00'::timestamptz), (2, 'NaN', now()), (3, 1, 'infinity'), (4, 1, '0044-03-15 00:00:00+00 BC'),
    (5, 1, '1960-01-01 00:00:00+00')) AS t (id, n, at)`);
  const pipeline = await bench.createIndex({ source_query: "SELECT * FROM content.odd", target_key: ["id"] });
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1, rows_rejected: 4 });
});

it("gives the same key the same document: long, composite and empty ones", async () => {
  await bench.query(`CREATE TABLE content.keyed AS SELECT a, b, n FROM
    (VALUES ('x', 'y', 1), ('', '', 2), (repeat('ж', 600), 'z', 3), ('["x"', '"y"]', 4), (E'q"\\\\', E'\\n', 5)) AS t (a, b, n)`);
  const pipeline = await bench.createIndex({ source_query: "SELECT * FROM content.keyed", target_key: ["a", "b"] });
  for (let round = 0; round < 2; round++)
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 5 });
  expect(await bench.search.count(pipeline.index)).toBe(5);
  const single = await bench.createIndex({ source_query: "SELECT a, n FROM content.keyed", target_key: ["a"] });
  expect(await bench.run(single)).toMatchObject({ status: "SUCCESS", rows_written: 5 });
});

it("refuses columns whose names an index cannot have, before it reads", async () => {
  const pipeline = await bench.createIndex({ source_query: 'SELECT 1 AS id, 2 AS "a.b"', target_key: ["id"] });
  expect(await bench.run(pipeline)).toMatchObject({
    status: "FAILED",
    error_code: "SOURCE_COLUMN_NAMES",
    rows_read: 0,
  });
});
