import { describe, expect, it } from "vitest";
import { readMessage, UNCHANGED } from "../../src/connectors/postgres/changes/slot/pgoutput.ts";
import {
  isVisible,
  lsnNumber,
  lsnText,
  readSnapshotText,
  shows,
  wholeXid,
} from "../../src/connectors/postgres/changes/slot/snapshot.ts";

const FILM = "16389";
const WHOLE = "16397";

/** Written by PostgreSQL 18 for a table of film and one with REPLICA IDENTITY FULL. */
const MESSAGES: [what: string, hex: string, expected: object][] = [
  [
    "a transaction",
    "420000000001b8bf900003038d4c103c8c000002f3",
    { kind: "begin", commitLsn: 0x1b8bf90n, committedAt: new Date("2026-11-18T15:18:51.536Z"), xid: 755 },
  ],
  ["its end", "43000000000001b8bf900000000001b8bfc00003038d4c103c8c", { kind: "other" }],
  ["a type", "5900004003636f6e74656e74006d6f6f6400", { kind: "other" }],
  [
    "a table",
    "5200004005636f6e74656e740066696c6d006400040169640000000017ffffffff007469746c650000000019ffffffff006e6f74650000000019ffffffff006d6f6f640000004003ffffffff",
    {
      kind: "relation",
      oid: FILM,
      name: "content.film",
      identity: "d",
      columns: [
        { name: "id", isKey: true },
        { name: "title", isKey: false },
        { name: "note", isKey: false },
        { name: "mood", isKey: false },
      ],
    },
  ],
  [
    "a table whose identity is all of it",
    "520000400d636f6e74656e740077686f6c650066000201610000000017ffffffff01620000000019ffffffff",
    {
      kind: "relation",
      oid: WHOLE,
      name: "content.whole",
      identity: "f",
      columns: [
        { name: "a", isKey: true },
        { name: "b", isKey: true },
      ],
    },
  ],
  [
    "a new row, with a text that is not ASCII",
    "49000040054e00047400000001317400000002c3a97400000002787a7400000003736164",
    { kind: "insert", oid: FILM, old: undefined, new: ["1", "é", "xz", "sad"] },
  ],
  [
    "an update that leaves the identity and what is stored apart as they are",
    "55000040054e00047400000001316e757400000003736164",
    { kind: "update", oid: FILM, old: undefined, new: ["1", null, UNCHANGED, "sad"] },
  ],
  [
    "an update of the identity",
    "55000040054b00047400000001316e6e6e4e00047400000001326e757400000003736164",
    {
      kind: "update",
      oid: FILM,
      old: { tuple: ["1", null, null, null], isWhole: false },
      new: ["2", null, UNCHANGED, "sad"],
    },
  ],
  [
    "an update with all of the old row",
    "550000400d4f00027400000001317400000001784e0002740000000131740000000179",
    { kind: "update", oid: WHOLE, old: { tuple: ["1", "x"], isWhole: true }, new: ["1", "y"] },
  ],
  [
    "a deleted row, by its identity",
    "44000040054b00047400000001326e6e6e",
    { kind: "delete", oid: FILM, old: { tuple: ["2", null, null, null], isWhole: false }, new: undefined },
  ],
  [
    "a deleted row, as a whole",
    "440000400d4f0002740000000131740000000179",
    { kind: "delete", oid: WHOLE, old: { tuple: ["1", "y"], isWhole: true }, new: undefined },
  ],
  ["emptied tables", "540000000200000040050000400d", { kind: "truncate", oids: [FILM, WHOLE] }],
];

describe("what a slot gives", () => {
  it.each(MESSAGES)("%s", (_, hex, expected) => {
    expect(readMessage(Buffer.from(hex, "hex"))).toEqual(expected);
  });

  it("is refused where it is not what it should be", () => {
    expect(() => readMessage(Buffer.from("5a00", "hex"))).toThrow("unknown kind");
    expect(() => readMessage(Buffer.from("49000000", "hex"))).toThrow("ends too early");
    expect(() => readMessage(Buffer.from("49000040024b0000", "hex"))).toThrow('"K" for a new row');
  });
});

describe("snapshots", () => {
  const snapshot = readSnapshotText("10:20:12,15");
  it("show what had ended", () => {
    expect([9n, 10n, 12n, 14n, 15n, 19n, 20n].map((xid) => isVisible(xid, snapshot))).toEqual([
      true,
      true,
      false,
      true,
      false,
      true,
      false,
    ]);
  });

  it("show all of an earlier one, or not", () => {
    expect(shows(readSnapshotText("12:25:12,22"), snapshot)).toBe(true);
    expect(shows(snapshot, snapshot)).toBe(true);
    expect(shows(readSnapshotText("12:19:12"), snapshot)).toBe(false);
    // What was shown before is running again: the server has gone back.
    expect(shows(readSnapshotText("11:25:11"), snapshot)).toBe(false);
  });

  it("tell which round of numbers a transaction is of", () => {
    const now = (xmax: bigint) => readSnapshotText(`1:${xmax}:`);
    const round = 1n << 32n;
    expect(wholeXid(7, now(10n))).toBe(7n);
    expect(wholeXid(7, now(3n * round + 10n))).toBe(3n * round + 7n);
    expect(wholeXid(0xffff_fff0, now(3n * round + 10n))).toBe(3n * round - 16n);
    expect(wholeXid(5, now(3n * round - 5n))).toBe(3n * round + 5n);
  });
});

it("places in the WAL are compared as numbers", () => {
  expect(lsnNumber("1/0")).toBe(1n << 32n);
  expect(lsnNumber("A/2C")).toBeGreaterThan(lsnNumber("9/FFFFFFFF"));
  expect(["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"].map((text) => lsnText(lsnNumber(text)))).toEqual([
    "0/0",
    "16/B374D848",
    "FFFFFFFF/FFFFFFFF",
  ]);
});
