import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalType } from "../../src/tasks/column-types.ts";
import { codecFor, WrongValue } from "../../src/tasks/value-codec.ts";

const roundTrip = (type: string, text: string): string => codecFor(type).encode(codecFor(type).decode(text));

describe("values", () => {
  it.each([
    ["boolean", "t", true],
    ["smallint", "-32768", -32_768],
    ["integer", "2147483647", 2_147_483_647],
    ["bigint", "9223372036854775807", 9_223_372_036_854_775_807n],
    ["real", "0.1", 0.1],
    ["double precision", "-0", -0],
    ["double precision", "NaN", Number.NaN],
    ["double precision", "-Infinity", Number.NEGATIVE_INFINITY],
    ["numeric(7,2)", "12345.60", "12345.60"],
    ["numeric", "NaN", "NaN"],
    ["timestamp with time zone", "2024-02-29 23:59:59.999999+00", "2024-02-29 23:59:59.999999+00"],
    ["timestamp(3) without time zone", "infinity", "infinity"],
    ["interval", "1 year 2 mons -03:04:05.000006", "1 year 2 mons -03:04:05.000006"],
    ["jsonb", '{"n": 12345678901234567890.123456789}', '{"n": 12345678901234567890.123456789}'],
    ["text[]", '{a,NULL,"NULL","",ё}', ["a", null, "NULL", "", "ё"]],
    ["bigint[]", "{9007199254740993,NULL}", [9_007_199_254_740_993n, null]],
    ["boolean[]", "{t,f}", [true, false]],
    ["character varying(10)[]", "{}", []],
    ["timestamp with time zone[]", '{"2024-01-01 00:00:00+00"}', ["2024-01-01 00:00:00+00"]],
    ["text[]", "{{a,b},{c,d}}", "{{a,b},{c,d}}"],
    ["box[]", "{(1,1),(0,0);(2,2),(1,1)}", "{(1,1),(0,0);(2,2),(1,1)}"],
    ["content.mood[]", "{happy,sad}", "{happy,sad}"],
    ["bytea", "\\x00ff", "\\x00ff"],
  ])("R2.4 %s %s is the same text afterwards", (type, text, value) => {
    expect(codecFor(type).decode(text)).toEqual(value);
    expect(roundTrip(type, text)).toBe(text);
  });

  it("R2.4 no 64-bit integer, double or text changes", () => {
    const wide = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(fc.property(wide, (value) => roundTrip("bigint", String(value)) === String(value)));
    const double = codecFor("double precision");
    fc.assert(fc.property(fc.double(), (value) => Object.is(double.decode(double.encode(value)), value)));
    const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\0"));
    fc.assert(fc.property(text, (value) => roundTrip("text", value) === value));
    fc.assert(
      fc.property(fc.array(fc.option(wide)), (array) => {
        const { encode, decode } = codecFor("bigint[]");
        expect(decode(encode(array))).toEqual(array);
      }),
    );
  });

  it.each([
    ["integer", 1.5, /whole number/],
    ["integer", 2 ** 31, /between/],
    ["integer", "1", /whole number/],
    ["bigint", 2 ** 60, /bigint/],
    ["bigint", 2n ** 63n, /64 bits/],
    ["boolean", 1, /true or false/],
    ["real", "1", /number/],
    ["numeric", "1,5", /number/],
    ["text", 5, /text, got number/],
    ["date", new Date(0), /text, got object/],
    ["text", "a\0b", /NUL/],
    ["text", "\ud800", /surrogate/],
    ["jsonb", { n: 1n }, /JSON/],
    ["jsonb", 5, /JSON/],
    ["text[]", "a", /array/],
    ["text[]", ["a", 1], /text/],
    ["text[]", [["a"]], /text/],
  ])("R2.4 a %s cannot be %s", (type, value, message) => {
    expect(() => codecFor(type).encode(value)).toThrow(WrongValue);
    expect(() => codecFor(type).encode(value)).toThrow(message);
  });

  it.each([
    ["numeric", 1.5, "1.5"],
    ["numeric", 12n, "12"],
    ["integer", 3n, "3"],
    ["bigint", 3, "3"],
    ["jsonb", { a: [1, "ё"] }, '{"a":[1,"ё"]}'],
  ])("takes for %s also %s", (type, value, text) => {
    expect(codecFor(type).encode(value)).toBe(text);
  });
});

describe("names of types", () => {
  it.each([
    ["int", "integer"],
    ["VARCHAR(10)", "character varying(10)"],
    ["varchar(10)[]", "character varying(10)[]"],
    ["timestamptz", "timestamp with time zone"],
    ["timestamptz(3)", "timestamp(3) with time zone"],
    ["timestamp(3) with time zone", "timestamp(3) with time zone"],
    ["timestamp[]", "timestamp without time zone[]"],
    ["decimal(7, 2)", "numeric(7,2)"],
    ["double precision", "double precision"],
    ['public."Mood"', 'public."Mood"'],
  ])("%s is %s", (short, long) => {
    expect(canonicalType(short)).toBe(long);
  });
});
