import { type Client, emptySession, endWith } from "../../postgres/connection.ts";

const KEPT_FOR_MS = 60_000;
const MOST_KEPT = 10;

interface Taken {
  readonly client: Client;
  /** Instead of ending it, when it is idle and nothing went wrong with it. */
  giveBack(): void;
}

interface Kept {
  readonly client: Client;
  readonly since: number;
  readonly emptied: Promise<unknown>;
}

/**
 * Sessions with the target, for the next run. A new one plans everything again, and its first temporary table makes
 * every other session of the server do so, too. They are taken over empty: as new, but for what was planned.
 */
export class KeptSessions {
  readonly #connect: () => Promise<Client>;
  readonly #resume: (client: Client) => Promise<void>;
  readonly #kept = new Set<Kept>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(connect: () => Promise<Client>, resume: (client: Client) => Promise<void>) {
    this.#connect = connect;
    this.#resume = resume;
  }

  /** The signal ends it, with whatever is under way. */
  async take(endSignal: AbortSignal): Promise<Taken> {
    endSignal.throwIfAborted();
    const client = (await this.#takeKept()) ?? (await this.#connect());
    const unbind = endWith(client, endSignal);
    return {
      client,
      giveBack: () => {
        unbind();
        this.#keep(client);
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end([...this.#kept]);
  }

  async #takeKept(): Promise<Client | undefined> {
    for (const kept of [...this.#kept].reverse()) {
      this.#kept.delete(kept);
      try {
        await kept.emptied;
        await this.#resume(kept.client);
        return kept.client;
      } catch {
        await kept.client.end().catch(() => undefined);
      }
    }
    return undefined;
  }

  #keep(client: Client): void {
    const emptied = emptySession(client);
    emptied.catch(() => undefined); // noticed by whoever takes it
    this.#kept.add({ client, since: performance.now(), emptied });
    void this.#endSome();
  }

  async #endSome(): Promise<void> {
    const oldest = performance.now() - KEPT_FOR_MS;
    const tooMany = this.#isClosed ? this.#kept.size : this.#kept.size - MOST_KEPT;
    const some = [...this.#kept].filter(({ since }, place) => place < tooMany || since < oldest);
    const ended = this.#end(some);
    clearTimeout(this.#timer);
    if (this.#kept.size > 0) this.#timer = setTimeout(() => void this.#endSome(), KEPT_FOR_MS / 4).unref();
    await ended;
  }

  async #end(some: readonly Kept[]): Promise<void> {
    for (const kept of some) this.#kept.delete(kept);
    await Promise.allSettled(some.map(({ client }) => client.end()));
  }
}
