import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FollowedTable, ImagesOf } from "../../src/sql-analysis/follow-plan.ts";
import { type FollowedSource, openFollowedSource } from "../support/followed-source.ts";

/** An image has the very value that the row had, whatever the application's session prints values like. */

const VALUES: Readonly<Record<string, readonly (string | null)[]>> = {
  numeric: ["1.00", "-0.000", "NaN", "Infinity", `${"9".repeat(60)}.5`, null],
  "numeric(12,4)": ["1.5000", null],
  "double precision": ["0.1", "-0", "1e-320", "1.7976931348623157e+308", "Infinity", "NaN", "0.30000000000000004"],
  real: ["0.1", "3.4028235e+38", "-0"],
  bigint: ["9223372036854775807", "-9223372036854775808"],
  boolean: ["t", "f", null],
  text: ["", "null", "\\N", `"quoted" \\ 'x' {a,b}`, "línea\n\ttab", "😀", null],
  "character(4)": ["ab  ", "    "],
  bpchar: ["ab", "ab  ", "    ", "", null],
  "bpchar[]": ['{"ab  ",ab}'],
  "character varying(10)": ["ab  "],
  uuid: ["3f333df6-90a4-4fda-8dd3-9485d27cee36"],
  bytea: ["\\x", "\\x00ff5c27"],
  date: ["2024-02-29", "infinity", "-infinity", "0044-03-15 BC"],
  "time with time zone": ["23:59:59.999999-07:30"],
  "timestamp without time zone": ["2024-01-02 03:04:05.678901", "infinity", "0001-01-01 00:00:00 BC"],
  "timestamp with time zone": ["2024-03-31 01:30:00.000001+00", "-infinity"],
  interval: ["1 mon -2 days +03:04:05.000006", "-1 years", "24:00:00"],
  money: ["-$1,234.56"],
  inet: ["10.0.0.1", "10.0.0.0/8", "::1"],
  json: [`{"b": 1,  "a": 1.00}`],
  jsonb: [`{"a": 1.00, "b": [null, "x"]}`, "null"],
  "integer[]": ["{1,NULL,3}", "{}", "[2:3]={1,2}", "{{1,2},{3,4}}"],
  "text[]": [`{NULL,"NULL","a\\"b","c\\\\d","e,f",""}`],
  "timestamp with time zone[]": [`{"2024-03-31 01:30:00.000001+00",infinity}`],
  "double precision[]": ["{0.1,-0}"],
  int4range: ["[1,5)", "empty", "(,)"],
  tstzrange: [`["2024-03-31 01:30:00.000001+00",)`],
  "bit varying(8)": ["10101", ""],
  xml: ["<a b='c'>d</a>"],
  tsvector: ["'a':1A 'b':2"],
  "content.mood": ["happy", "it's"],
  "content.mood[]": [`{happy,"it's"}`],
  "content.code": ["AB", null],
  "content.padded": ["ab  ", null],
  "content.pair": [`(1,"a, ""b""")`, "(,)"],
  "content.pair[]": [`{"(1,\\"a, \\"\\"b\\"\\"\\")","(,)"}`],
};

let source: FollowedSource;
beforeAll(async () => {
  source = await openFollowedSource();
  await source.query(`CREATE TYPE content.mood AS ENUM ('happy', 'it''s');
    CREATE DOMAIN content.code AS varchar(4) CHECK (value = upper(value));
    CREATE DOMAIN content.padded AS bpchar;
    CREATE TYPE content.pair AS (n integer, t text)`);
});
afterAll(() => source.drop());

/** As an application may have set them. */
const SETTINGS = `SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'sql_standard'; SET TimeZone = 'Asia/Kathmandu';
  SET extra_float_digits = -5; SET bytea_output = escape; SET search_path = pg_temp, content; SET xmlbinary = hex`;

describe("an image", () => {
  let number = 0;
  it.each(Object.entries(VALUES))("of %s is exact", async (type, values) => {
    number += 1;
    const name = `value_${number}`;
    await source.query(`CREATE TABLE content.${name} (id bigint, value ${type})`);
    const table: FollowedTable = {
      schema: "content",
      name,
      imageColumns: [
        { name: "id", type: "bigint" },
        { name: "value", type },
      ],
      readColumns: ["id", "value"],
      change: {
        kind: "keys",
        // Found only if both are the same, byte by byte; a composite that is (,) is no NULL.
        statement: (images: ImagesOf) => `SELECT DISTINCT t.id FROM ${images({ schema: "content", name }).changed} AS c
          JOIN content.${name} t ON ROW(c.id, c.value::${type})::record *= ROW(t.id, t.value)::record`,
      },
    };
    await source.install([table]);
    const columns = [{ name: "id", type: "bigint" }];
    const all = await source.follow({ query: `SELECT id FROM content.${name}`, key: ["id"], columns, tables: [table] });
    const start = await all.start();
    const app = await source.connect();
    // Written with the settings of the test, which has the values in their usual form; recorded with the application's.
    for (const [id, value] of values.entries()) {
      await app.query(`RESET ALL; SET TimeZone = 'UTC'`);
      await app.query(`CREATE TEMP TABLE IF NOT EXISTS given AS SELECT * FROM content.${name} LIMIT 0`);
      await app.query(`INSERT INTO given VALUES ($1, $2)`, [id, value]);
      await app.query(SETTINGS);
      await app.query(`INSERT INTO content.${name} SELECT * FROM given WHERE id = $1`, [id]);
    }
    const ids = values.map((_, id) => [String(id)]);
    expect(await all.since(start)).toEqual({ kind: "keys", changes: values.length, keys: ids });
  });

  it("of a domain can be read although the domain has stricter rules by now", async () => {
    await source.query(`CREATE DOMAIN content.grade AS integer;
      CREATE TABLE content.graded (id content.grade)`);
    const table: FollowedTable = {
      schema: "content",
      name: "graded",
      imageColumns: [{ name: "id", type: "content.grade" }],
      readColumns: ["id"],
      change: {
        kind: "keys",
        statement: (images: ImagesOf) =>
          `SELECT DISTINCT c.id FROM ${images({ schema: "content", name: "graded" }).changed} AS c`,
      },
    };
    await source.install([table]);
    const columns = [{ name: "id", type: "content.grade" }];
    const all = await source.follow({ query: "SELECT id FROM content.graded", key: ["id"], columns, tables: [table] });
    const start = await all.start();
    await source.query("INSERT INTO content.graded VALUES (-1); UPDATE content.graded SET id = 1");
    await source.query("ALTER DOMAIN content.grade ADD CHECK (value > 0)");
    expect(await all.since(start)).toMatchObject({ kind: "keys", keys: [["-1"], ["1"]] });
  });

  it("of a generated column has what was computed", async () => {
    await source.query("CREATE TABLE content.made (id bigint, double bigint GENERATED ALWAYS AS (id * 2) STORED)");
    const table: FollowedTable = {
      schema: "content",
      name: "made",
      imageColumns: [{ name: "double", type: "bigint" }],
      readColumns: ["double"],
      change: {
        kind: "keys",
        statement: (images: ImagesOf) =>
          `SELECT DISTINCT c.double FROM ${images({ schema: "content", name: "made" }).changed} AS c`,
      },
    };
    await source.install([table]);
    const columns = [{ name: "double", type: "bigint" }];
    const all = await source.follow({
      query: "SELECT double FROM content.made",
      key: ["double"],
      columns,
      tables: [table],
    });
    const start = await all.start();
    await source.query("INSERT INTO content.made VALUES (4); UPDATE content.made SET id = 5");
    expect(await all.since(start)).toEqual({ kind: "keys", changes: 2, keys: [["10"], ["8"]] });
  });

  it("of a virtual column cannot be had, and the table is refused", async () => {
    const [version] = await source.query("SELECT current_setting('server_version_num')::int AS number");
    if (Number(version?.["number"]) < 180_000) return;
    await source.query("CREATE TABLE content.virtual (id bigint, double bigint GENERATED ALWAYS AS (id * 2) VIRTUAL)");
    const table: FollowedTable = {
      schema: "content",
      name: "virtual",
      imageColumns: [{ name: "id", type: "bigint" }],
      readColumns: ["id", "double"],
      change: { kind: "everything" },
    };
    await source.install([table]);
    const columns = [{ name: "id", type: "bigint" }];
    const all = await source.follow({ query: "SELECT id FROM content.virtual", key: ["id"], columns, tables: [table] });
    await expect(all.start()).rejects.toThrow("content.virtual.double is a virtual generated column");
  });
});
