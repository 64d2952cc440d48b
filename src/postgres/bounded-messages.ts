import type { Duplex } from "node:stream";

/**
 * A server says what it does not like about a value by repeating the value, in up to a gigabyte. The driver makes one
 * text of a message, and Node.js cannot make one of more than half a gigabyte: the driver throws where nobody catches
 * it, and the process ends. So errors and notices are cut before the driver sees them. What they are stands first.
 */
const MOST_MESSAGE_BYTES = 64 * 1024;
const [ERROR, NOTICE] = [0x45, 0x4e];
/** The kind of a message, and its length without the kind. */
const HEADER_BYTES = 5;
/** Ends the text that was cut, and the message. */
const END = Buffer.from([0, 0]);

/** Takes its place between the socket and the driver's one listener. COPY takes that away for a while, and gives it back. */
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
      // A row that is too long for a text. Whoever waits for it is told.
      stream.destroy(error as Error);
    }
  });
}

class MessageCutter {
  /** A header of which only a part has come. */
  #held = Buffer.alloc(0);
  /** Bytes of the message under way that are still to come. */
  #left = 0;
  /** The beginning of a message that is cut. */
  #kept: Buffer | undefined;

  /** Gives on what came, in as few parts as it came. */
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
