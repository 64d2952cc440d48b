import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { boundMessages } from "../../src/postgres/bounded-messages.ts";
import { connect, connectForData, createPool } from "../../src/postgres/connection.ts";
import { runs } from "../support/seed.ts";

describe("a message of the server without end", () => {
  const options = { url: inject("postgresUrl"), applicationName: "vitrina test" };

  it.each([
    ["of a program", connect],
    ["of the data path", connectForData],
    ["of the pool", async () => createPool({ ...options, max: 1 })],
  ])("is cut in a session %s, which goes on", async (_, open) => {
    const session = await open(options);
    try {
      const failed = await session.query("SELECT repeat('x', 3000000)::int").catch((error: Error) => error);
      expect(failed).toMatchObject({ code: "22P02", severity: "ERROR" });
      const { message } = failed as Error;
      expect(message).toMatch(/^invalid input syntax for type integer: "x+$/);
      expect(message.length).toBeLessThan(65_536);
      const { rows } = await session.query("SELECT length(repeat('y', 3000000))::text AS a, repeat('y', 300000) AS b");
      expect(rows).toEqual([{ a: "3000000", b: "y".repeat(300_000) }]);
    } finally {
      await session.end();
    }
  });

  it("leaves everything else as it came, however it came", () => {
    const message = fc
      .tuple(fc.constantFrom("E", "N", "D", "Z", "C"), fc.constantFrom(0, 1, 3, 200, 65_000, 65_600, 150_000))
      .map(([kind, length]) => {
        const body = Buffer.alloc(length, kind.toLowerCase());
        const header = Buffer.from([kind.charCodeAt(0), 0, 0, 0, 0]);
        header.writeUInt32BE(length + 4, 1);
        return Buffer.concat([header, body]);
      });
    const property = fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.array(fc.constantFrom(1, 2, 4, 5, 6, 100, 65_536), { minLength: 1, maxLength: 30 }),
      (messages, sizes) => {
        const stream = new PassThrough();
        const got: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => got.push(Buffer.from(chunk)));
        boundMessages({ connection: { stream } });
        const all = Buffer.concat(messages);
        for (let at = 0, n = 0; at < all.length; n += 1) {
          // The sizes come again and again; small ones only for a while, so that it ends.
          const size = n < 200 ? (sizes[n % sizes.length] ?? 1) : 65_536;
          stream.emit("data", all.subarray(at, at + size));
          at += size;
        }
        const expected = messages.map((one) => {
          const isLong = one.length > 65_536 && /^[EN]/.test(String.fromCharCode(one[0] ?? 0));
          if (!isLong) return one;
          const cut = Buffer.concat([one.subarray(0, 65_536), Buffer.from([0, 0])]);
          cut.writeUInt32BE(65_537, 1);
          return cut;
        });
        expect(Buffer.concat(got).equals(Buffer.concat(expected))).toBe(true);
      },
    );
    fc.assert(property, { numRuns: runs(100) });
  });
});
