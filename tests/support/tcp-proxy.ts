import { once } from "node:events";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";

/** When the proxy acts: on the nth passing of some bytes, within one connection. */
export interface Rule {
  readonly direction: "to server" | "to client";
  readonly bytes: string;
  readonly nth: number;
  /** Texts that the client must have sent before, in this order: they identify one connection and one moment. */
  readonly after: readonly string[];
}

/**
 * - `cut`: both ends are reset, and nothing of the piece with the bytes is forwarded: what was on its way to the server
 *   never happens, and what the server did is never reported to the client.
 * - `silence`: the piece is held back too, but both ends stay open, as behind a firewall that forgot the connection.
 */
type Action = "cut" | "silence";

/** A proxy in front of a server that forwards everything, and breaks connections when a rule says so. */
export interface TcpProxy {
  /** The same URL, through the proxy. */
  through(url: string): string;
  /** Acts once; `acted` tells whether it has. */
  on(rule: Rule, action: Action): { readonly acted: boolean };
  /** As when the server is down: open connections are reset, and new ones refused, until it is told to accept. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
}

interface ActiveRule extends Rule {
  readonly action: Action;
  acted: boolean;
}

export async function startTcpProxy(serverUrl: string): Promise<TcpProxy> {
  const upstream = new URL(serverUrl);
  const links = new Set<Link>();
  const rules: ActiveRule[] = [];
  const server = createServer((client) => {
    const link = new Link(client, dial(Number(upstream.port), upstream.hostname), rules);
    links.add(link);
    client.on("close", () => links.delete(link));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const refuse = async (): Promise<void> => {
    for (const link of links) link.cut();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  };
  return {
    through(url) {
      const changed = new URL(url);
      changed.host = `127.0.0.1:${port}`;
      return changed.href;
    },
    on(rule, action) {
      const active = { ...rule, action, acted: false };
      rules.push(active);
      return active;
    },
    refuse,
    async accept() {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    close: refuse,
  };
}

/** One connection and its other half. */
class Link {
  readonly #ends: readonly [Socket, Socket];
  readonly #rules: readonly ActiveRule[];
  readonly #progress = new Map<ActiveRule, { passed: number; count: number }>();
  #silent = false;

  constructor(client: Socket, server: Socket, rules: readonly ActiveRule[]) {
    this.#ends = [client, server];
    this.#rules = rules;
    this.#join(client, server, "to server");
    this.#join(server, client, "to client");
  }

  cut(): void {
    for (const end of this.#ends) end.resetAndDestroy();
  }

  #join(from: Socket, to: Socket, direction: Rule["direction"]): void {
    from.setNoDelay(true);
    from.on("data", (piece: Buffer) => {
      if (this.#silent) return;
      const rule = this.#rules.find((candidate) => !candidate.acted && this.#isDue(candidate, direction, piece));
      if (rule === undefined) {
        if (to.write(piece)) return;
        from.pause();
        to.once("drain", () => from.resume());
        return;
      }
      rule.acted = true;
      if (rule.action === "cut") this.cut();
      else this.#silent = true;
    });
    from.on("error", () => this.cut());
    from.on("close", () => {
      if (!this.#silent) to.end();
    });
  }

  /** Statements are small and sent at once, so a text is never split between two pieces. */
  #isDue(rule: ActiveRule, direction: Rule["direction"], piece: Buffer): boolean {
    const progress = this.#progress.get(rule) ?? { passed: 0, count: 0 };
    this.#progress.set(rule, progress);
    let from = 0;
    while (direction === "to server" && progress.passed < rule.after.length) {
      const found = piece.indexOf(rule.after[progress.passed] as string, from);
      if (found < 0) return false;
      from = found + 1;
      progress.passed += 1;
    }
    if (direction !== rule.direction || progress.passed < rule.after.length) return false;
    for (let at = piece.indexOf(rule.bytes, from); at >= 0; at = piece.indexOf(rule.bytes, at + 1)) progress.count += 1;
    return progress.count >= rule.nth;
  }
}
