import { expect, it } from "vitest";
import type { RetryClass } from "../../src/domain/error-catalogue.ts";
import { databaseError } from "../../src/postgres/errors.ts";

/** What a run does about an error is decided by its SQLSTATE. */
it.each<[state: string, what: string, retry: RetryClass]>([
  ["57P01", "the server is shut down", "reconnect"],
  ["57P05", "the session idled for too long", "reconnect"],
  ["25006", "the server is a standby now", "reconnect"],
  ["53300", "there is no connection left", "reconnect"],
  ["40P01", "a deadlock", "wait"],
  ["25P04", "the transaction took too long", "wait"],
  ["53100", "the disk is full", "wait"],
  ["22003", "a number is out of range", "row"],
  ["23505", "a key is there twice", "row"],
  ["P0001", "a trigger raised an error", "row"],
  ["54000", "a row is too large for an index", "row"],
  ["42501", "no permission", "never"],
])("SQLSTATE %s: %s", (code, message, retry) => {
  expect(databaseError(Object.assign(new Error(message), { code }), "write").retry).toBe(retry);
});
