import { readFileSync } from "node:fs";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { VitrinaError } from "../../domain/error-catalogue.ts";

/**
 * Plain HTTP to the nodes of a cluster. Everything sent here may be sent twice, so if a node does not answer, the next
 * is simply tried.
 */

export interface ClusterConfig {
  /** Empty: there is no cluster. A URL may hold a user and a password. */
  readonly urls: readonly string[];
  readonly apiKey: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly caFile: string | undefined;
  readonly requestTimeoutMs: number;
}

export interface SearchRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  /** Lines of JSON that are ready to be sent. */
  readonly lines?: Buffer;
  readonly timeoutMs?: number | undefined;
  /** Return the body of the answer as it came: parsing would round its numbers. */
  readonly asText?: boolean;
}

export interface SearchAnswer {
  readonly status: number;
  /** Parsed JSON, or undefined when there was none; text where that was asked for. */
  readonly body: unknown;
  readonly retryAfterMs: number;
  /** Another node was asked before and gave no complete answer, but may have carried it out. */
  readonly isSecondTry: boolean;
}

/** No complete answer came: the request may or may not have been carried out. */
export class NoAnswer extends Error {}

export interface SearchClient {
  /** One try on each node. Throws NoAnswer when none of them gave a complete answer. */
  send(request: SearchRequest): Promise<SearchAnswer>;
  close(): void;
}

type NodeAnswer = Omit<SearchAnswer, "isSecondTry">;

interface Node {
  readonly url: URL;
  readonly authorization: string | undefined;
}

export function openClient(config: ClusterConfig): SearchClient {
  const nodes = config.urls.map((url) => parseNode(url, config));
  const ca = config.caFile === undefined ? undefined : readCertificate(config.caFile);
  const options = { keepAlive: true, maxSockets: 100 };
  const agents = { http: new HttpAgent(options), https: new HttpsAgent({ ...options, ...(ca && { ca }) }) };
  let current = 0;

  const sendTo = (node: Node, request: SearchRequest): Promise<NodeAnswer> =>
    new Promise((resolve, reject) => {
      const { url, authorization } = node;
      const isSecure = url.protocol === "https:";
      const payload =
        request.lines ?? (request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body)));
      const sent = (isSecure ? httpsRequest : httpRequest)({
        agent: isSecure ? agents.https : agents.http,
        host: url.hostname.replace(/^\[|\]$/g, ""),
        port: url.port || (isSecure ? 443 : 9200),
        method: request.method,
        path: `${url.pathname.replace(/\/$/, "")}${request.path}`,
        headers: {
          accept: "application/json",
          ...(authorization && { authorization }),
          ...(payload && {
            "content-type": request.lines ? "application/x-ndjson" : "application/json",
            "content-length": payload.length,
          }),
        },
        signal: AbortSignal.timeout(request.timeoutMs ?? config.requestTimeoutMs),
      });
      const fail = (error: Error): void => reject(new NoAnswer(describe(error, url), { cause: error }));
      sent.on("error", fail);
      sent.on("response", (response) => readAnswer(response, request.asText).then(resolve, fail));
      sent.end(payload);
    });

  return {
    async send(request) {
      let failure = new NoAnswer("there is no node to ask");
      for (let tried = 0; tried < nodes.length; tried++) {
        try {
          return { ...(await sendTo(nodes[current] as Node, request)), isSecondTry: tried > 0 };
        } catch (error) {
          failure = error as NoAnswer;
          current = (current + 1) % nodes.length;
        }
      }
      throw failure;
    },
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

/** The credentials leave the URL here, so that no message can show them. */
function parseNode(text: string, { apiKey, user, password }: ClusterConfig): Node {
  const url = new URL(text);
  const name = user ?? decodeURIComponent(url.username);
  const secret = password ?? decodeURIComponent(url.password);
  url.username = "";
  url.password = "";
  const basic = name === "" ? undefined : `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`;
  return { url, authorization: apiKey === undefined ? basic : `ApiKey ${apiKey}` };
}

function readCertificate(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new VitrinaError("SETTINGS_INVALID", `ELASTICSEARCH_CA_FILE cannot be read: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

async function readAnswer(response: IncomingMessage, asText = false): Promise<NodeAnswer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  if (!response.complete) throw new Error("the answer was cut off");
  const text = Buffer.concat(chunks).toString("utf8");
  const isJson = /json/.test(response.headers["content-type"] ?? "");
  // Something between here and the cluster may answer in its own words; its status tells enough.
  const body: unknown = isJson && text !== "" ? JSON.parse(text) : undefined;
  const isWanted = asText && response.statusCode === 200;
  const retryAfter = Number(response.headers["retry-after"]);
  return {
    status: response.statusCode ?? 0,
    body: isWanted ? text : body,
    retryAfterMs: retryAfter > 0 ? retryAfter * 1000 : 0,
  };
}

function describe(error: Error, { host }: URL): string {
  const inner = (error as AggregateError).errors?.[0];
  const cause = error.message === "" && inner instanceof Error ? inner : error;
  return `${host}: ${cause.name === "TimeoutError" || cause.name === "AbortError" ? "no answer in time" : cause.message}`;
}
