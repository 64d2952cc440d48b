import { describe, expect, it } from "vitest";
import { formatKey, makeKey } from "../../src/domain/api-key.ts";
import { redact } from "../../src/observability/log.ts";

const KEY = formatKey(makeKey((count) => Buffer.alloc(count, 0xfb)));
const TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl";

describe("R8.4 the log has no secrets", () => {
  it.each([
    ["could not reach postgres://ann:s3cret@db:5432/cinema", "could not reach postgres://***@db:5432/cinema"],
    ["redis://:s3cret@cache/0", "redis://***@cache/0"],
    [`${"x".repeat(100)}postgres://ann:s3cret@db`, `${"x".repeat(100)}postgres://***@db`],
    ["postgres://ann:s3/cr@t@db/cinema", "postgres://***@db/cinema"],
    [`key ${KEY} refused`, `key vitrina_${"fb".repeat(6)}_*** refused`],
    [`authorization: Bearer ${TOKEN}`, "authorization: Bearer ***"],
    ["Authorization: Basic YW5uOnMzY3JldA==", "Authorization: Basic ***"],
    [`jwt ${TOKEN}, next`, "jwt ***, next"],
    ["password=s3cret host=db", "password=*** host=db"],
    ['{"password":"s3cret","host":"db"}', '{"password":"***","host":"db"}'],
    [JSON.stringify({ text: '{"api_key": "s3cret"}' }), JSON.stringify({ text: '{"api_key": "***"}' })],
    ["VITRINA_ROLE_SECRET=s3cret", "VITRINA_ROLE_SECRET=***"],
  ])("%s", (text, cleaned) => {
    expect(redact(text)).toBe(cleaned);
  });

  it.each([
    "GET http://127.0.0.1:8000/api/v1/pipelines",
    'relation "content.password" does not exist',
    "The token has expired.",
  ])("leaves alone what is none: %s", (text) => {
    expect(redact(text)).toBe(text);
  });

  it("copes with a word of 200,000 letters", () => {
    const word = "x".repeat(200_000);
    expect(redact(word)).toBe(word);
  });
});
