import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { Log } from "./log.ts";

export interface ProbeServerParts {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly registry: Registry;
  /** What is wrong with this process, if anything: it should be restarted. */
  livenessProblem(): string | undefined;
  /** Throws when the process cannot do its work at the moment. */
  checkReady(): Promise<void>;
  readonly log: Log;
}

export interface ProbeServer {
  readonly url: string;
  stop(): Promise<void>;
}

interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
}

/** A slow client must not hold a connection for ever. */
const RECEIVE_TIMEOUT_MS = 10_000;

/** For a process without an API: metrics, liveness and readiness. Read-only. */
export async function startProbeServer(parts: ProbeServerParts): Promise<ProbeServer> {
  const server = createServer({ requestTimeout: RECEIVE_TIMEOUT_MS, headersTimeout: RECEIVE_TIMEOUT_MS });
  server.on("request", (request, response) => {
    answerTo(request, parts).then(
      (answer) => send(response, answer),
      (error: unknown) => {
        parts.log.error({ err: error }, "a probe could not be answered");
        send(response, { status: 500, text: "The metrics could not be collected; the log of this process says why." });
      },
    );
  });
  server.listen(parts.port, parts.host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const host = parts.host.includes(":") ? `[${parts.host}]` : parts.host;
  const url = `http://${host}:${port}`;
  parts.log.info({ url }, "metrics are served");
  return {
    url,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function answerTo({ method, url = "" }: IncomingMessage, parts: ProbeServerParts): Promise<ProbeAnswer> {
  if (method !== "GET" && method !== "HEAD") return { status: 405, text: "Only GET and HEAD are supported here." };
  switch (url.split("?")[0]) {
    case "/metrics":
      return { status: 200, text: await parts.registry.metrics(), type: parts.registry.contentType };
    case "/healthz": {
      const livenessProblem = parts.livenessProblem();
      return livenessProblem === undefined ? OK : { status: 503, text: livenessProblem };
    }
    case "/readyz":
      return parts.checkReady().then(
        () => OK,
        (error: unknown) => {
          parts.log.warn({ err: error }, "not ready");
          return { status: 503, text: "The meta-store cannot be reached or used at the moment; the log says why." };
        },
      );
    default:
      return { status: 404, text: "There are only /metrics, /healthz and /readyz here." };
  }
}

const OK: ProbeAnswer = { status: 200, text: "ok" };

function send(response: ServerResponse, { status, text, type = "text/plain; charset=utf-8" }: ProbeAnswer): void {
  const headers = { "content-type": type, "x-content-type-options": "nosniff", "cache-control": "no-store" };
  response.writeHead(status, headers).end(text.endsWith("\n") ? text : `${text}\n`);
}
