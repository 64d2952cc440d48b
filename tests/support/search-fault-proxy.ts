import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * What the proxy does to a bulk request:
 * - `some-429`: a third of the operations is not carried out, and answered with 429 each.
 * - `some-500`: all are carried out, and a third is answered with 500 each.
 * - `block`: none is carried out; each is answered as on a full disk.
 * - `429`, `503`: nothing is carried out, and the whole request gets this status.
 * - `silence`: it is carried out, and no answer ever comes.
 * - `cut`: it is carried out, and the answer is cut off in the middle.
 * - `short`: all but the last operation is carried out, and the answer has nothing about that one.
 * - `garbage`: it is carried out, and the answer is not JSON.
 * - `late`: the cluster has looked up the alias already, and carries it out only when `release` is called.
 */
export type BulkFault =
  | "some-429"
  | "some-500"
  | "block"
  | "429"
  | "503"
  | "silence"
  | "cut"
  | "short"
  | "garbage"
  | "late";

/** Which requests find one shard missing, and are answered as a cluster does that has lost the node with it. */
type ShardLoss = "refresh" | "point in time" | "search";

export interface FaultProxy {
  readonly url: string;
  /** What happens to each of the next bulk requests. */
  next(...faults: (BulkFault | "nothing")[]): void;
  /** The faults that happened. */
  readonly happened: BulkFault[];
  /** How many bytes each bulk request had. */
  readonly sizes: number[];
  /** From now on; undefined: no more. A point in time without the shard stays without it. */
  loseShard(loss: ShardLoss | undefined): void;
  /** How many requests found the shard missing. */
  missed(): number;
  /** Lets the late requests through, and resolves with the cluster's answer. */
  release(): Promise<string>;
  close(): Promise<void>;
}

export async function startFaultProxy(serverUrl: string): Promise<FaultProxy> {
  const waiting: (BulkFault | "nothing")[] = [];
  const happened: BulkFault[] = [];
  const sizes: number[] = [];
  const late = new EventEmitter();
  const partialPoints = new Set<string>();
  let loss: ShardLoss | undefined;
  let missed = 0;
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
    if (fault === undefined || fault === "nothing") {
      const partial = isBulk ? undefined : await answerWithoutShard(request, body);
      return send(response, partial ?? (await forward(request, body)));
    }
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
      case "some-500": {
        const items = JSON.parse((await forward(request, body)).text).items as Record<string, { _id: string }>[];
        const error = { type: "node_disconnected_exception", reason: "disconnected" };
        const failed = (item: (typeof items)[number]) =>
          Object.fromEntries(Object.entries(item).map(([action, { _id }]) => [action, { _id, status: 500, error }]));
        const answered = items.map((item, n) => (n % 3 === 0 ? failed(item) : item));
        return send(response, { status: 200, text: JSON.stringify({ items: answered }) });
      }
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

  /** Half of what was found is missing, unless the request says that it wants all or nothing. */
  async function answerWithoutShard(request: IncomingMessage, body: Buffer): Promise<Forwarded | undefined> {
    const { method, url = "" } = request;
    const point = body.length > 0 ? (JSON.parse(body.toString("utf8")) as { pit?: { id: string } }).pit?.id : undefined;
    const isPartial = point !== undefined && partialPoints.has(point);
    const isLost = method === "POST" && loss !== undefined && PATH_OF_LOSS[loss].test(url);
    if (!isLost && !isPartial) return undefined;
    missed += 1;
    const wantsAll = /allow_partial_\w+=false|\/_pit\?/.test(url);
    if (wantsAll && isLost) return { status: 503, text: SHARD_MISSING };
    const answer = loss === "refresh" ? {} : JSON.parse((await forward(request, body)).text);
    // A shard that is away has not failed: OpenSearch counts it nowhere.
    answer._shards = { total: 2, successful: 1, skipped: 0, failed: loss === "refresh" ? 1 : 0 };
    if (answer.pit_id !== undefined && answer.hits === undefined) partialPoints.add(answer.pit_id);
    if (answer.hits !== undefined) answer.hits.hits = answer.hits.hits.filter((_: unknown, n: number) => n % 2 === 0);
    return { status: 200, text: JSON.stringify(answer) };
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (...faults) => void waiting.push(...faults),
    loseShard(lost) {
      loss = lost;
    },
    missed: () => missed,
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

const PATH_OF_LOSS: Readonly<Record<ShardLoss, RegExp>> = {
  refresh: /\/_refresh$/,
  "point in time": /\/(?:_pit|point_in_time)\?/,
  search: /\/_search(?:\?|$)/,
};
const SHARD_MISSING = JSON.stringify({
  error: { type: "search_phase_execution_exception", reason: "Search rejected due to missing shards" },
});

interface Forwarded {
  readonly status: number;
  readonly text: string;
}

function send(response: ServerResponse, { status, text }: Forwarded): void {
  response.writeHead(status, { "content-type": "application/json" }).end(text);
}

/** A `delete` has one line, everything else two. */
function operationsOf(body: Buffer): string[] {
  const lines = body.toString("utf8").split("\n").slice(0, -1);
  const operations: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const count = lines[at]?.startsWith('{"delete"') ? 1 : 2;
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
