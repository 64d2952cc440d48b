import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import type { Target } from "../../src/domain/target.ts";
import { formatTarget, parseTarget } from "../support/targets.ts";

/** Any name PostgreSQL can store, with the characters that matter to the grammar in good number. */
const identifier = fc
  .oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 40 }),
    fc.string({
      unit: fc.constantFrom('"', ".", "a", "A", "Ж", "ß", "İ", "é", " ", "\n", ":", "$", "1"),
      minLength: 1,
      maxLength: 40,
    }),
  )
  .map((name) => name.replaceAll("\0", "0"))
  .filter((name) => Buffer.byteLength(name) <= 63);

const target: fc.Arbitrary<Target> = fc.oneof(
  fc.record({ kind: fc.constant("postgres" as const), schema: identifier, table: identifier }),
  fc.record({ kind: fc.constant("elasticsearch" as const), index: fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,62}$/) }),
);

describe("targets", () => {
  it("R1.2 every target survives being written and read", () => {
    fc.assert(
      fc.property(target, (original) => {
        expect(parseTarget(formatTarget(original))).toEqual(original);
      }),
    );
  });

  it("R1.2 the text of a target is canonical: reading and writing it changes nothing", () => {
    fc.assert(
      fc.property(target, (original) => {
        const text = formatTarget(original);
        expect(formatTarget(parseTarget(text))).toBe(text);
      }),
    );
  });

  it("R8.1 any text is a target or is refused with a sentence", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom('"', ".", "a", "e", "s", ":", " ", "\0", "\ud800") }),
    );
    fc.assert(
      fc.property(text, (anything) => {
        try {
          expect(parseTarget(formatTarget(parseTarget(anything)))).toEqual(parseTarget(anything));
        } catch (error) {
          expect(error).toBeInstanceOf(VitrinaError);
          expect(error).toMatchObject({ code: "TARGET_NOT_ALLOWED", message: expect.stringMatching(/\.$/) });
        }
      }),
    );
  });
});
