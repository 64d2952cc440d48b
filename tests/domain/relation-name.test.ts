import { describe, expect, it } from "vitest";
import { relationName, relationNamed, type SchemaAndName } from "../../src/domain/relation-name.ts";

describe("the name of a relation", () => {
  it.each([
    [{ schema: "content", name: "film" }, "content.film"],
    [{ schema: "Odd Shop", name: "Übersicht" }, "Odd Shop.Übersicht"],
    [{ schema: "odd", name: "x.t" }, '"odd"."x.t"'],
    [{ schema: "odd.x", name: "t" }, '"odd.x"."t"'],
    [{ schema: "odd", name: 'a"b' }, '"odd"."a""b"'],
    [{ schema: '"a"', name: '"."' }, '"""a"""."""."""'],
  ])("of %j is %s, and leads back to it", (relation: SchemaAndName, written) => {
    expect(relationName(relation)).toBe(written);
    expect(relationNamed(written)).toEqual(relation);
  });

  it("is not read where it was written otherwise", () => {
    for (const written of ["film", "a.b.c", '"a".b', '"a"b"."c"', ""]) expect(relationNamed(written)).toBeUndefined();
  });
});
