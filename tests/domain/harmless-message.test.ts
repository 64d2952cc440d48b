import { describe, expect, it } from "vitest";
import { harmlessMessage, type ServerError } from "../../src/domain/harmless-message.ts";

const SECRET = "ann@example.com";
const shown = (code: string, message: string, more: Partial<ServerError> = {}) =>
  harmlessMessage({ code, message, ...more });

describe("what everybody may read of a database's error", () => {
  it.each([
    ["22P02", `invalid input syntax for type integer: "${SECRET}"`, 'invalid input syntax for type integer: "…"'],
    [
      "22P02",
      `invalid input value for enum content.mood: "${SECRET}"`,
      'invalid input value for enum content.mood: "…"',
    ],
    ["22008", `date/time field value out of range: "2020-13-45 ${SECRET}"`, 'date/time field value out of range: "…"'],
    ["22003", 'value "99999999999" is out of range for type integer', 'value "…" is out of range for type integer'],
    ["22021", 'invalid byte sequence for encoding "UTF8": 0x61 0x6e', 'invalid byte sequence for encoding "…"'],
    ["42601", `syntax error in tsquery: "${SECRET}"`, 'syntax error in tsquery: "…"'],
    ["42704", `type "${SECRET}" does not exist`, 'type "…" does not exist'],
    ["42P01", `relation "${SECRET}" does not exist`, 'relation "…" does not exist'],
    ["22P02", `invalid input syntax for type json`, "invalid input syntax for type json"],
  ])("%s: the value is taken out of %s", (code, message, expected) => {
    expect(shown(code, message)).toBe(expected);
  });

  it.each([
    ["23502", 'null value in column "title" of relation "films" violates not-null constraint'],
    ["23514", 'new row for relation "films" violates check constraint "films_title_check"'],
    ["23505", 'duplicate key value violates unique constraint "films_pkey"'],
    ["22001", "value too long for type character varying(3)"],
    ["22012", "division by zero"],
    ["42501", "permission denied for table films"],
    ["57014", "canceling statement due to statement timeout"],
    ["40P01", "deadlock detected"],
  ])("%s: names and resources stay, as in %s", (code, message) => {
    expect(shown(code, message)).toBe(message);
  });

  it("shows what is wrong with the text of the query, and nothing of a value that it computed", () => {
    const message = 'column "nonsense" does not exist';
    expect(shown("42703", message, { position: "12" })).toBe(message);
    expect(shown("42703", message)).toBe('column "…" does not exist');
    expect(shown("22P02", `invalid input syntax for type integer: "${SECRET}"`, { position: "8" })).not.toContain(
      SECRET,
    );
  });

  it.each(["P0001", "22000", "42601", "42704", "22008", "23514", "XX000", "57014", "99999"])(
    "says of a %s that somebody raised only what kind it is, where, and the names told apart",
    (code) => {
      const raised = {
        routine: "exec_stmt_raise",
        where: "PL/pgSQL function analytics.check_film() line 3 at RAISE",
        constraint: "films_check",
      };
      const text = shown(code, `${SECRET}: no`, raised);
      expect(text).not.toContain(SECRET);
      expect(text).toMatch(/^.+ \(constraint "films_check", in analytics\.check_film, line 3\)$/);
      // Also where only the context tells, and where the words imitate the server's.
      expect(shown(code, 'duplicate key value violates unique constraint "x"', { where: raised.where })).not.toContain(
        'x"',
      );
      expect(shown(code, SECRET, { where: 'PL/Python function "f"' })).not.toContain(SECRET);
    },
  );

  it.each(["22", "23", "42", "21", "P0", "XX", "HV", "F0", "38"])(
    "hides words of class %s that it does not know",
    (kind) => {
      expect(shown(`${kind}999`, `Something about ${SECRET}`)).not.toContain(SECRET);
    },
  );
});
