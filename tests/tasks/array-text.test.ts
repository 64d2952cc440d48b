import fc from "fast-check";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { formatArrayText, parseArrayText } from "../../src/tasks/array-text.ts";

const NASTY = [
  "",
  " ",
  "NULL",
  "null",
  "{",
  "}",
  ",",
  '"',
  "\\",
  '\\"',
  "a b",
  "\n",
  "\t",
  "\v",
  "\u00a0",
  "ё",
  "😀",
  "nullx",
];
const element = fc.oneof(
  fc.constant(null),
  fc.constantFrom(...NASTY),
  fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "")),
);
const elements = fc.array(element, { maxLength: 6 });

describe("the text of PostgreSQL arrays", () => {
  it("R2.4 every array survives the way there and back", () => {
    fc.assert(
      fc.property(elements, (array) => {
        expect(parseArrayText(formatArrayText(array))).toEqual(array);
      }),
    );
  });

  it("R2.4 is letter by letter what PostgreSQL prints", async () => {
    const samples = [[...NASTY, null], ...fc.sample(elements, 300)];
    const client = new pg.Client(inject("postgresUrl"));
    await client.connect();
    const { rows } = await client
      .query<{ text: string }>(
        `SELECT (SELECT coalesce(array_agg(e ORDER BY n), '{}') FROM json_array_elements_text(a) WITH ORDINALITY AS t (e, n))::text
           AS text FROM json_array_elements($1::json) WITH ORDINALITY AS s (a, i) ORDER BY i`,
        [JSON.stringify(samples)],
      )
      .finally(() => client.end());
    expect(samples.map(formatArrayText)).toEqual(rows.map(({ text }) => text));
    expect(rows.map(({ text }) => parseArrayText(text))).toEqual(samples);
  });

  it.each(["{{a,b},{c,d}}", '{{"a"},{b}}', "[0:1]={a,b}", '{"a"', '{"a"b}', '{a,"b",}'])("leaves %s alone", (text) => {
    expect(parseArrayText(text)).toBeUndefined();
  });
});
