import { describe, expect, it } from "vitest";
import { ERROR_CATALOGUE, VitrinaError } from "../../src/domain/error-catalogue.ts";
import { EVERY_ERROR } from "../support/every-error.ts";

describe("the error catalogue", () => {
  it.each(EVERY_ERROR)("R3.6 %s can be shown to a person", (code, { status, title, hint }) => {
    expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThanOrEqual(599);
    expect(title).toMatch(/^[A-Z]\S*( \S+)+[^.\s]$/);
    expect(hint).toMatch(/^[A-Z]\S*( \S+)+\.$/);
  });

  it("R3.6 no two errors have the same title", () => {
    const titles = EVERY_ERROR.map(([, { title }]) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });

  it("no connector has a code of another, or of the catalogue", () => {
    const codes = EVERY_ERROR.map(([code]) => code);
    expect(new Set(codes).size).toBe(codes.length);
  });
});

describe("VitrinaError", () => {
  it("takes status, retry class and hint from the catalogue", () => {
    const error = new VitrinaError("DATABASE_UNAVAILABLE", "The database at db:5432 does not answer.");
    expect(error).toMatchObject({ name: "VitrinaError", httpStatus: 503, retry: "reconnect", problems: [], extra: {} });
    expect(error.hint).toBe(ERROR_CATALOGUE.DATABASE_UNAVAILABLE.hint);
    expect("cause" in error).toBe(false);
  });

  it("keeps its cause, problems and a better hint", () => {
    const cause = new Error("ECONNREFUSED");
    const problems = [{ pointer: "/name", message: "The name is empty." }];
    const error = new VitrinaError("INVALID_REQUEST", "The name is empty.", {
      cause,
      problems,
      hint: "Give it a name.",
      extra: { status: "IDLE" },
    });
    expect(error).toMatchObject({ cause, problems, hint: "Give it a name.", extra: { status: "IDLE" } });
  });
});
