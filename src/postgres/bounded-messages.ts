import type { Duplex } from "node:stream";

/**
 * A server's error about a value may quote the whole value, up to a gigabyte. The driver turns a message into one string,
 * and Node.js cannot make a string of more than half a gigabyte: the driver throws where nobody can catch it, and the
 * process ends. So errors and notices are cut before the driver sees them. The important part comes first.
 */
const MOST_MESSAGE_BYTES = 64 * 1024;
const [ERROR, NOTICE] = [0x45, 0x4e];
/** The kind of a message, and its length without the kind. */
const HEADER_BYTES = 5;
/** Ends the text that was cut, and the message. */
const END = Buffer.from([0, 0]);

/** Goes between the socket and the driver's only listener. COPY removes that listener for a while, and restores it. */
export function boundMessages(client: object): void {
  const { stream } = (client as { connection: { stream: Duplex } }).connection;
  const [read] = stream.listeners("data") as ((chunk: Buffer) => void)[];
  if (read === undefined) return;
  const cutter = new MessageCutter();
  stream.removeListener("data", read);
  stream.on("data", (chunk: Buffer) => {
    try {
      for (const part of cutter.pass(chunk)) read(part);
    } catch (error) {
      // A row that is too long for a string: fails the query that waits for it.
      stream.destroy(error as Error);
    }
  });
}

class MessageCutter {
  /** A header that has arrived only in part. */
  #held = Buffer.alloc(0);
  /** Bytes of the current message that are still to come. */
  #left = 0;
  /** The beginning of a message that is cut. */
  #kept: Buffer | undefined;

  /** Passes on what arrived, in as few parts as possible. */
  *pass(incoming: Buffer): Generator<Buffer> {
    const chunk = this.#held.length === 0 ? incoming : Buffer.concat([this.#held, incoming]);
    this.#held = Buffer.alloc(0);
    let passedOn = 0;
    for (let at = 0; at < chunk.length; ) {
      if (this.#left === 0) {
        if (chunk.length - at < HEADER_BYTES) {
          this.#held = Buffer.from(chunk.subarray(at));
          break;
        }
        this.#left = chunk.readUInt32BE(at + 1) + 1;
        const isCut = this.#left > MOST_MESSAGE_BYTES && (chunk[at] === ERROR || chunk[at] === NOTICE);
        if (isCut) {
          if (at > passedOn) yield chunk.subarray(passedOn, at);
          this.#kept = Buffer.alloc(0);
        }
      }
      const end = Math.min(chunk.length, at + this.#left);
      this.#left -= end - at;
      if (this.#kept !== undefined) {
        this.#kept = Buffer.concat([
          this.#kept,
          chunk.subarray(at, Math.min(end, at + MOST_MESSAGE_BYTES - this.#kept.length)),
        ]);
        passedOn = end;
        if (this.#left === 0) yield this.#shortened(this.#kept);
      }
      at = end;
    }
    const whole = chunk.subarray(passedOn, chunk.length - this.#held.length);
    if (whole.length > 0) yield whole;
  }

  #shortened(kept: Buffer): Buffer {
    this.#kept = undefined;
    const message = Buffer.concat([kept, END]);
    message.writeUInt32BE(message.length - 1, 1);
    return message;
  }
}
