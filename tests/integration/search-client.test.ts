import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import {
  type ClusterConfig,
  NoAnswer,
  openClient,
  type SearchClient,
} from "../../src/connectors/elasticsearch/client.ts";

const servers: Server[] = [];
const clients: SearchClient[] = [];
const folders: string[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
  for (const server of servers.splice(0)) server.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
const serve = async (answer: RequestListener): Promise<string> =>
  `http://127.0.0.1:${await listen(createServer(answer))}`;

function open(config: Partial<ClusterConfig>): SearchClient {
  const nobody = { urls: [], apiKey: undefined, user: undefined, password: undefined, caFile: undefined };
  const client = openClient({ ...nobody, requestTimeoutMs: 5000, ...config });
  clients.push(client);
  return client;
}
const yes: RequestListener = (_request, response) =>
  void response.setHeader("content-type", "application/json").end('{"ok":true}');
const GET = { method: "GET", path: "/x" } as const;

it("asks the next node when one does not answer, and stays with it", async () => {
  let asked = 0;
  const good = await serve((request, response) => {
    asked += 1;
    yes(request, response);
  });
  const client = open({ urls: ["http://127.0.0.1:1", good] });
  expect(await client.send(GET)).toMatchObject({ status: 200, body: { ok: true } });
  expect(await client.send(GET)).toMatchObject({ status: 200 });
  expect(asked).toBe(2);
});

it.each([
  ["an API key", { apiKey: "a2V5" }, "ApiKey a2V5"],
  ["user and password", { user: "u", password: "p:w" }, `Basic ${Buffer.from("u:p:w").toString("base64")}`],
])("logs in by %s", async (_what, config, expected) => {
  const seen: (string | undefined)[] = [];
  const url = await serve((request, response) => {
    seen.push(request.headers.authorization);
    yes(request, response);
  });
  await open({ urls: [url], ...config }).send(GET);
  expect(seen).toEqual([expected]);
});

it("takes user and password out of the URL, so that no message shows them", async () => {
  const failure = await open({ urls: ["http://user:s3cret@127.0.0.1:1"] })
    .send(GET)
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(NoAnswer);
  expect(String(failure)).toMatch(/127\.0\.0\.1:1/);
  expect(String(failure)).not.toMatch(/s3cret/);
});

it.each<[string, (request: IncomingMessage, response: Parameters<RequestListener>[1]) => void]>([
  [
    "is cut off",
    (_, response) =>
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" }).end('{"ok":'),
  ],
  ["is no JSON", (_, response) => response.writeHead(200, { "content-type": "application/json" }).end('{"ok":')],
  ["breaks off", (_, response) => void response.write("{", () => response.destroy())],
  ["never comes", () => undefined],
])("an answer that %s is none", async (_what, answer) => {
  const url = await serve(answer);
  await expect(open({ urls: [url], requestTimeoutMs: 300 }).send(GET)).rejects.toBeInstanceOf(NoAnswer);
});

/** Node.js cannot make a certificate. */
const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
if (!hasOpenssl) console.warn("Not tested: certificates of the search cluster, because there is no openssl here.");

it.skipIf(!hasOpenssl)("trusts the certificate authority it is given, and no other", async () => {
  const folder = mkdtempSync(join(tmpdir(), "vitrina-tls-"));
  folders.push(folder);
  const file = (name: string): string => join(folder, name);
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "1",
      "-keyout",
      file("key"),
      "-out",
      file("cert"),
      ...subject,
    ],
    { stdio: "ignore" },
  );
  const server = createSecureServer({ key: readFileSync(file("key")), cert: readFileSync(file("cert")) }, yes);
  const url = `https://127.0.0.1:${await listen(server as unknown as Server)}`;
  await expect(open({ urls: [url] }).send(GET)).rejects.toBeInstanceOf(NoAnswer);
  expect(await open({ urls: [url], caFile: file("cert") }).send(GET)).toMatchObject({ status: 200 });
  expect(() => open({ urls: [url], caFile: file("missing") })).toThrow(/ELASTICSEARCH_CA_FILE cannot be read/);
});
