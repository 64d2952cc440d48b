import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * What the proxy does to a bulk request:
 * - `some-429`: a third of the operations is not carried out, and answered with 429 each.
 * - `block`: none is carried out; each is answered as on a full disk.
 * - `429`, `503`: nothing is carried out, and the whole request gets this status.
 * - `silence`: it is carried out, and no answer ever comes.
 * - `cut`: it is carried out, and the answer is cut off in the middle.
 * - `short`: all but the last operation is carried out, and the answer has nothing about that one.
 * - `garbage`: it is carried out, and the answer is not JSON.
 * - `late`: the cluster has looked up the alias already, and carries it out only when `release` is called.
 */
export type BulkFault = "some-429" | "block" | "429" | "503" | "silence" | "cut" | "short" | "garbage" | "late";

export interface FaultProxy {
  readonly url: string;
  /** What happens to each of the next bulk requests. */
  next(...faults: (BulkFault | "nothing")[]): void;
  /** The faults that happened. */
  readonly happened: BulkFault[];
  /** How many bytes each bulk request had. */
  readonly sizes: number[];
  /** Lets the late requests through, and resolves with the cluster's answer. */
  release(): Promise<string>;
  close(): Promise<void>;
}

export async function startFaultProxy(serverUrl: string): Promise<FaultProxy> {
  const waiting: (BulkFault | "nothing")[] = [];
  const happened: BulkFault[] = [];
  const sizes: number[] = [];
  const late = new EventEmitter();
  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy());
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const isBulk = request.url?.includes("/_bulk") === true;
    if (isBulk) sizes.push(body.length);
    const fault = isBulk ? waiting.shift() : undefined;
    if (fault === undefined || fault === "nothing") return send(response, await forward(request, body));
    happened.push(fault);
    await act(fault, request, body, response);
  }

  async function forward(request: IncomingMessage, body: Buffer, path = request.url): Promise<Forwarded> {
    const answer = await fetch(`${serverUrl}${path}`, {
      method: request.method ?? "GET",
      headers: { "content-type": request.headers["content-type"] ?? "application/json" },
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  }

  async function act(
    fault: BulkFault,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    switch (fault) {
      case "429":
        response.setHeader("retry-after", "1");
        return send(response, {
          status: 429,
          text: '{"error":{"type":"es_rejected_execution_exception","reason":"full"}}',
        });
      case "503":
        return send(response, { status: 503, text: "{}" });
      case "some-429":
        return send(
          response,
          await refuseSome(request, body, (n) => n % 3 === 0, 429, "es_rejected_execution_exception"),
        );
      case "block":
        return send(response, await refuseSome(request, body, () => true, 403, "cluster_block_exception"));
      case "silence":
        await forward(request, body);
        return;
      case "cut": {
        const { text } = await forward(request, body);
        response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
        response.write(text.slice(0, text.length / 2), () => response.destroy());
        return;
      }
      case "short": {
        const others = operationsOf(body).slice(0, -1);
        return send(response, await forward(request, Buffer.from(others.join(""))));
      }
      case "late": {
        const alias = request.url?.split("/")[1];
        const [index] = Object.keys((await (await fetch(`${serverUrl}/_alias/${alias}`)).json()) as object);
        await once(late, "release");
        const answer = await forward(request, body, `/${index}/_bulk?refresh=true`);
        late.emit("answered", answer.text);
        return send(response, answer);
      }
      case "garbage":
        await forward(request, body);
        return send(response, { status: 200, text: '{"items":[{]' });
    }
  }

  /** Only the others are carried out; the answer covers all. */
  async function refuseSome(
    request: IncomingMessage,
    body: Buffer,
    isRefused: (n: number) => boolean,
    status: number,
    type: string,
  ): Promise<Forwarded> {
    const operations = operationsOf(body);
    const others = operations.filter((_, n) => !isRefused(n));
    const done =
      others.length === 0 ? [] : JSON.parse((await forward(request, Buffer.from(others.join("")))).text).items;
    const items = operations.map((operation, n) => {
      if (!isRefused(n)) return done.shift();
      const [[action, { _id }]] = Object.entries(JSON.parse(operation.split("\n")[0] as string)) as [
        [string, { _id: string }],
      ];
      return { [action]: { _id, status, error: { type, reason: "no room" } } };
    });
    return { status: 200, text: JSON.stringify({ items }) };
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (...faults) => void waiting.push(...faults),
    async release() {
      const answered = once(late, "answered");
      late.emit("release");
      const [text] = await answered;
      return text as string;
    },
    happened,
    sizes,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

interface Forwarded {
  readonly status: number;
  readonly text: string;
}

function send(response: ServerResponse, { status, text }: Forwarded): void {
  response.writeHead(status, { "content-type": "application/json" }).end(text);
}

/** An `index` has two lines, a `delete` one. */
function operationsOf(body: Buffer): string[] {
  const lines = body.toString("utf8").split("\n").slice(0, -1);
  const operations: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const count = lines[at]?.startsWith('{"index"') ? 2 : 1;
    operations.push(
      lines
        .slice(at, at + count)
        .map((line) => `${line}\n`)
        .join(""),
    );
    at += count;
  }
  return operations;
}
