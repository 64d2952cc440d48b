/**
 * Reads what the plugin pgoutput writes, in version 1 of its protocol: one message for each row of a peek. See
 * "Logical Replication Message Formats" of the PostgreSQL documentation.
 */

export interface BeginMessage {
  readonly kind: "begin";
  /** Where the record of its commit begins. */
  readonly commitLsn: bigint;
  readonly committedAt: Date;
  /** The last 32 bits. */
  readonly xid: number;
}

export interface RelationMessage {
  readonly kind: "relation";
  readonly oid: string;
  readonly name: string;
  /** d: by the primary key, i: by an index, f: all columns, n: nothing. */
  readonly identity: string;
  readonly columns: readonly { readonly name: string; readonly isKey: boolean }[];
}

/** The text of each column; `unchanged`: it is stored apart, and was not touched. */
export type Tuple = readonly (string | null | typeof UNCHANGED)[];
export const UNCHANGED = Symbol("unchanged");

export interface RowMessage {
  readonly kind: "insert" | "update" | "delete";
  readonly oid: string;
  /** `isWhole`: all columns, and otherwise those of the identity. */
  readonly old: { readonly tuple: Tuple; readonly isWhole: boolean } | undefined;
  readonly new: Tuple | undefined;
}

interface TruncateMessage {
  readonly kind: "truncate";
  readonly oids: readonly string[];
}

/** What says nothing about rows. */
interface OtherMessage {
  readonly kind: "other";
}

export type Message = BeginMessage | RelationMessage | RowMessage | TruncateMessage | OtherMessage;

export function readMessage(data: Buffer): Message {
  const reader = new MessageReader(data);
  const letter = reader.letter();
  switch (letter) {
    case "B":
      return { kind: "begin", commitLsn: reader.int64(), committedAt: reader.time(), xid: reader.uint32() };
    case "R":
      return relation(reader);
    case "I":
      return { kind: "insert", oid: reader.oid(), old: undefined, new: newTuple(reader) };
    case "U":
      return update(reader);
    case "D":
      return { kind: "delete", oid: reader.oid(), old: oldTuple(reader, reader.letter()), new: undefined };
    case "T":
      return truncate(reader);
    case "C":
    case "O":
    case "Y":
    case "M":
      return { kind: "other" };
    default:
      throw new Error(`A replication slot gave a message of the unknown kind ${JSON.stringify(letter)}.`);
  }
}

function relation(reader: MessageReader): RelationMessage {
  const oid = reader.oid();
  const name = `${reader.text()}.${reader.text()}`;
  const identity = reader.letter();
  const columns = Array.from({ length: reader.int16() }, () => {
    const isKey = (reader.byte() & 1) === 1;
    const column = { name: reader.text(), isKey };
    reader.skip(8); // its type
    return column;
  });
  return { kind: "relation", oid, name, identity, columns };
}

function update(reader: MessageReader): RowMessage {
  const oid = reader.oid();
  const letter = reader.letter();
  if (letter === "N") return { kind: "update", oid, old: undefined, new: reader.tuple() };
  return { kind: "update", oid, old: oldTuple(reader, letter), new: newTuple(reader) };
}

function newTuple(reader: MessageReader): Tuple {
  const letter = reader.letter();
  if (letter !== "N") throw new Error(`A replication slot gave ${JSON.stringify(letter)} for a new row.`);
  return reader.tuple();
}

function oldTuple(reader: MessageReader, letter: string): NonNullable<RowMessage["old"]> {
  if (letter !== "K" && letter !== "O") {
    throw new Error(`A replication slot gave ${JSON.stringify(letter)} for an old row.`);
  }
  return { tuple: reader.tuple(), isWhole: letter === "O" };
}

function truncate(reader: MessageReader): TruncateMessage {
  const length = reader.uint32();
  reader.skip(1); // CASCADE, RESTART IDENTITY
  return { kind: "truncate", oids: Array.from({ length }, () => reader.oid()) };
}

/** Times are counted from the year 2000, in microseconds. */
const EPOCH_MS = Date.UTC(2000, 0, 1);

class MessageReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  skip(bytes: number): number {
    const from = this.#at;
    this.#at += bytes;
    if (this.#at > this.#data.length) throw new Error("A message of a replication slot ends too early.");
    return from;
  }

  byte(): number {
    return this.#data.readUInt8(this.skip(1));
  }

  letter(): string {
    return String.fromCharCode(this.byte());
  }

  int16(): number {
    return this.#data.readInt16BE(this.skip(2));
  }

  uint32(): number {
    return this.#data.readUInt32BE(this.skip(4));
  }

  int64(): bigint {
    return this.#data.readBigUInt64BE(this.skip(8));
  }

  oid(): string {
    return String(this.uint32());
  }

  time(): Date {
    return new Date(EPOCH_MS + Number(this.int64() / 1000n));
  }

  /** Ended by a zero. */
  text(): string {
    const end = this.#data.indexOf(0, this.#at);
    if (end < 0) throw new Error("A name in a message of a replication slot does not end.");
    const text = this.#data.toString("utf8", this.#at, end);
    this.#at = end + 1;
    return text;
  }

  tuple(): Tuple {
    return Array.from({ length: this.int16() }, () => {
      const letter = this.letter();
      if (letter === "n") return null;
      if (letter === "u") return UNCHANGED;
      if (letter !== "t") throw new Error(`A replication slot gave a value of the unknown kind ${letter}.`);
      const length = this.uint32();
      const from = this.skip(length);
      return this.#data.toString("utf8", from, from + length);
    });
  }
}
