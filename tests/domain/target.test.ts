import { describe, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import type { Target } from "../../src/domain/target.ts";
import { formatTarget, parseTarget, targetsWithin } from "../support/targets.ts";

const table = (schema: string, name: string): Target => ({ kind: "postgres", schema, table: name }) as Target;
const index = (name: string): Target => ({ kind: "elasticsearch", index: name }) as Target;

function refusalOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(VitrinaError);
    expect(error).toMatchObject({ code: "TARGET_NOT_ALLOWED", httpStatus: 422 });
    return (error as VitrinaError).message;
  }
  throw new Error("The target was accepted.");
}

describe("parseTarget", () => {
  it.each<[string, Target]>([
    ["analytics.film_dim", table("analytics", "film_dim")],
    ["  analytics.film_dim\n", table("analytics", "film_dim")],
    ["Analytics.Film_Dim", table("analytics", "film_dim")],
    ['analytics."Film Dim"', table("analytics", "Film Dim")],
    ['"My ""Schema"""."a.b"', table('My "Schema"', "a.b")],
    ['"es:film"."t"', table("es:film", "t")],
    ["analytics._x$1", table("analytics", "_x$1")],
    ["витрина.фильмы", table("витрина", "фильмы")],
    ["es:film_dim", index("film_dim")],
    ["es:0-films", index("0-films")],
    [`es:${"a".repeat(63)}`, index("a".repeat(63))],
  ])("R1.2 reads %j", (text, target) => {
    expect(parseTarget(text)).toEqual(target);
  });

  it("folds only ASCII letters of an unquoted name, as PostgreSQL does in a UTF-8 database", () => {
    expect(parseTarget("analytics.FilmЖ")).toEqual(table("analytics", "filmЖ"));
  });

  it.each([
    "",
    ".",
    "film_dim",
    "db.analytics.film_dim",
    "analytics.",
    ".film_dim",
    'analytics."film',
    'analytics.film"dim"',
    'analytics."a"b"',
  ])("refuses %j and shows how a target is written", (text) => {
    expect(refusalOf(() => parseTarget(text))).toContain("<schema>.<table>");
  });

  it.each([
    "analytics.film dim",
    "analytics.1film",
    "analytics.film-dim",
    "analytics.film;drop",
    "ES:film.dim",
    "analytics.fi\u200blm",
    "analytics.$film",
  ])("asks for quotes around the odd name in %j", (text) => {
    expect(refusalOf(() => parseTarget(text))).toContain("double quotes");
  });

  it("says that a name is empty", () => {
    expect(refusalOf(() => parseTarget('analytics.""'))).toBe("A schema or table name is empty.");
  });

  it.each(['analytics."a\0b"', 'analytics."a\ud800b"'])("refuses %j, which PostgreSQL cannot store", (text) => {
    expect(refusalOf(() => parseTarget(text))).toContain("cannot store");
  });

  it("counts the 63 bytes of a name in UTF-8, not in characters", () => {
    expect(parseTarget(`analytics.${"a".repeat(63)}`)).toEqual(table("analytics", "a".repeat(63)));
    expect(parseTarget(`analytics.${"ж".repeat(31)}`)).toEqual(table("analytics", "ж".repeat(31)));
    expect(refusalOf(() => parseTarget(`analytics.${"a".repeat(64)}`))).toContain("63 bytes");
    expect(refusalOf(() => parseTarget(`analytics.${"ж".repeat(32)}`))).toContain("63 bytes");
  });

  it("refuses a text of any length with a short sentence", () => {
    expect(refusalOf(() => parseTarget(`analytics."${'""'.repeat(5_000_000)}"`))).toContain("63 bytes");
    expect(refusalOf(() => parseTarget(`es:${"a".repeat(10_000)}`)).length).toBeLessThan(300);
  });

  it("accepts two names of 63 quotes, the longest text there is", () => {
    const quotes = '"'.repeat(63);
    expect(parseTarget(formatTarget(table(quotes, quotes)))).toEqual(table(quotes, quotes));
  });

  it.each([
    "es:",
    "es:Film",
    "es:_film",
    "es:-film",
    "es:film*",
    "es:film,other",
    "es:../x",
    "es:film dim",
    "es:фильм",
  ])("refuses the index of %j", (text) => {
    expect(refusalOf(() => parseTarget(text))).toContain("is not an index name");
  });
});

describe("formatTarget", () => {
  it.each<[Target, string]>([
    [table("analytics", "film_dim"), "analytics.film_dim"],
    [table("analytics", "Film Dim"), 'analytics."Film Dim"'],
    [table("analytics", "Film"), 'analytics."Film"'],
    [table("a.b", 'say "hi"'), '"a.b"."say ""hi"""'],
    [table("витрина", "Фильмы"), "витрина.Фильмы"],
    [index("film_dim"), "es:film_dim"],
  ])("quotes only where needed: %j is %j", (target, text) => {
    expect(formatTarget(target)).toBe(text);
  });
});

describe("the allow-list", () => {
  it.each(["analytics._vitrina_checkpoint", 'analytics."_vitrina_load_x"', "es:films__previous", "es:f__write_1_2"])(
    "R8.1 refuses %j, where Vitrina keeps its own records",
    (text) => {
      const everything = targetsWithin({ schemas: ["analytics"], indexes: ["*"] });
      expect(everything.isAllowed(parseTarget(text))).toBe(false);
      expect(refusalOf(() => everything.require(text))).toContain("its own records");
    },
  );

  it("R8.1 may name single targets, which narrow the schemas and indexes", () => {
    const only = ["analytics.film_dim", "analytics.mart_*", "es:films", "other.x"];
    const narrowed = targetsWithin({ schemas: ["analytics"], indexes: ["*"], only });
    const isAllowed = (text: string) => narrowed.isAllowed(parseTarget(text));
    expect(["analytics.film_dim", "analytics.mart_a", "es:films"].filter(isAllowed)).toHaveLength(3);
    expect(["analytics.film_dim2", "analytics.films", "es:film", "other.x", "analytics.x"].filter(isAllowed)).toEqual(
      [],
    );
    expect(refusalOf(() => narrowed.require("analytics.x"))).toContain("analytics.film_dim, analytics.mart_*");
  });

  const allowList = targetsWithin({ schemas: ["analytics", "Marts"], indexes: ["film_dim", "agg-*", "*_v2"] });

  it.each(["analytics.film_dim", "ANALYTICS.x", '"Marts".x', "es:film_dim", "es:agg-", "es:agg-1", "es:genre_v2"])(
    "R8.1 allows %j",
    (text) => {
      expect(allowList.require(text)).toEqual(parseTarget(text));
    },
  );

  it.each(["etl.etl_pipelines", '"Analytics".x', "marts.x", "es:film_dim2", "es:film", "es:my-agg-1", "es:genre_v2x"])(
    "R8.1 refuses %j and names what is allowed",
    (text) => {
      expect(allowList.isAllowed(parseTarget(text))).toBe(false);
      const refusal = refusalOf(() => allowList.require(text));
      expect(refusal).toContain(formatTarget(parseTarget(text)));
      expect(refusal).toContain('analytics.<table>, "Marts".<table>, es:film_dim, es:agg-*, es:*_v2');
    },
  );

  it("R8.1 allows nothing when it is empty, and says so", () => {
    const empty = targetsWithin({ schemas: [], indexes: [] });
    expect(refusalOf(() => empty.require("analytics.film_dim"))).toContain("allowed are: none");
    expect(empty.isAllowed(index("film_dim"))).toBe(false);
  });

  it("takes every character but * literally", () => {
    expect(
      targetsWithin({ schemas: [], indexes: ["film.dim", "film_di+m", "(film_dim"] }).isAllowed(index("film_dim")),
    ).toBe(false);
  });

  it("refuses nonsense before it asks what is allowed", () => {
    expect(refusalOf(() => allowList.require("film_dim"))).toContain("<schema>.<table>");
  });
});
