import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose";

const ALGORITHMS = ["RS256", "ES256", "EdDSA"] as const;
type Algorithm = (typeof ALGORITHMS)[number];

/** A login service as a company has one: keys of its own, which it serves over HTTP. */
export interface LoginService {
  readonly issuer: string;
  readonly settings: Record<string, string>;
  /** How often its keys were fetched. */
  readonly fetches: () => number;
  /** PEM of the RS256 key: public, so an attacker has it. */
  readonly publicKey: string;
  sign(claims: JWTPayload, more?: SignOptions): Promise<string>;
  /** From now on it answers its keys with this status. */
  answerWith(status: number): void;
  stop(): Promise<void>;
}

interface SignOptions {
  readonly algorithm?: Algorithm;
  readonly header?: object;
}

export const AUDIENCE = "vitrina";

type Pair = { readonly publicKey: CryptoKey; readonly privateKey: CryptoKey };

async function makePairs(): Promise<ReadonlyMap<Algorithm, Pair>> {
  const pairs = new Map<Algorithm, Pair>();
  for (const algorithm of ALGORITHMS) pairs.set(algorithm, await generateKeyPair(algorithm, { extractable: true }));
  return pairs;
}

/** Every service has the same: making a key for RSA takes longer than most tests that use it. */
let madePairs: Promise<ReadonlyMap<Algorithm, Pair>> | undefined;

export async function startLoginService(): Promise<LoginService> {
  madePairs ??= makePairs();
  const pairs = await madePairs;
  const keys = await Promise.all(
    [...pairs].map(async ([alg, { publicKey }]) => ({ ...(await exportJWK(publicKey)), alg, kid: alg, use: "sig" })),
  );
  let fetches = 0;
  let status = 200;
  const server = createServer((_, response) => {
    fetches += 1;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ keys }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    settings: { JWT_ISSUER: issuer, JWT_AUDIENCE: AUDIENCE, JWT_JWKS_URL: `${issuer}/jwks.json` },
    fetches: () => fetches,
    publicKey: await exportSPKI((pairs.get("RS256") as Pair).publicKey),
    async sign(claims, { algorithm = "RS256", header = {} } = {}) {
      const { privateKey } = pairs.get(algorithm) as Pair;
      const signing = new SignJWT(claims).setProtectedHeader({ alg: algorithm, kid: algorithm, ...header });
      return signing.sign(privateKey, { crit: { x: true } });
    },
    answerWith(next) {
      status = next;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
