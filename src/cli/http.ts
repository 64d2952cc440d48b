import { type IncomingMessage, request as requestHttp } from "node:http";

export interface HttpRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * `fetch` takes longer to load than the rest of a command together. Redirects are not followed: whoever answers with one
 * is not the API, and must not be given its key.
 */
export async function sendHttp(url: string, { method, headers, body, signal }: HttpRequest): Promise<IncomingMessage> {
  const isSecure = url.startsWith("https:");
  const request = isSecure ? (await import("node:https")).request : requestHttp;
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    request(url, { method, headers: { ...headers, ...length }, ...(signal !== undefined && { signal }) })
      .once("response", resolve)
      .once("error", (error) => reject(signal?.aborted ? signal.reason : error))
      .end(body);
  });
}

export async function readText(answer: IncomingMessage): Promise<string> {
  answer.setEncoding("utf8");
  let text = "";
  for await (const part of answer) text += part;
  return text;
}
