import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { bearer } from "../support/api-client.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

let database: TestDatabase;
let folder: string;
const started: VitrinaProcess[] = [];

beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  // A working folder without a .env of somebody's own.
  folder = await mkdtemp(join(tmpdir(), "vitrina-access-"));
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((child) => child.stop()));
});

function vitrina(args: string[], env: Record<string, string> = {}): VitrinaProcess {
  const roles = roleEnvironment(database.urls);
  const child = spawnVitrina(args, { cwd: folder, env: { ...roles, API_PORT: "0", ...env } });
  started.push(child);
  return child;
}

async function startApi(env: Record<string, string>): Promise<string> {
  const api = vitrina(["api"], env);
  await api.untilPrinted("api started");
  return (
    JSON.parse(
      api
        .output()
        .split("\n")
        .find((line) => line.includes("api started")) as string,
    ) as { url: string }
  ).url;
}

describe("R8.5 the API as a process", () => {
  it.each<[string, Record<string, string>, string]>([
    ["another address than loopback without a login", { API_HOST: "0.0.0.0" }, "API_HOST is not a loopback address"],
    ["half a login service", { API_AUTH: "required", JWT_ISSUER: "https://login.example" }, "JWT_JWKS_URL must be set"],
    ["a word that means no login", { API_AUTH: "off" }, "API_AUTH is not none or required"],
  ])("refuses to start with %s, and says why", async (_, env, message) => {
    const api = vitrina(["api"], env);
    expect(await api.exited).toBe(1);
    expect(api.output()).toContain(message);
    expect(api.output()).not.toContain("api started");
  });

  it("listens elsewhere with a login, and answers nobody without a key", async () => {
    const url = new URL(await startApi({ API_HOST: "0.0.0.0", API_AUTH: "required" }));
    url.hostname = "127.0.0.1";
    expect((await fetch(new URL("/pipelines", url))).status).toBe(401);
    expect((await fetch(new URL("/health", url))).status).toBe(200);
  });
});

describe("R8.5 vitrina key", () => {
  it("makes the first key before any exists, prints it alone, and the API takes it", async () => {
    const create = vitrina(["key", "create", "--name", "me", "--role", "admin", "--expires-in", "1h"]);
    let stdout = "";
    create.child.stdout?.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    expect(await create.exited).toBe(0);
    expect(stdout).toMatch(/^vitrina_[0-9a-f]{12}_[\w-]{43}\n$/);
    const key = stdout.trim();
    const url = await startApi({ API_AUTH: "required" });
    const ask = async (): Promise<number> => (await fetch(`${url}/keys`, { headers: bearer(key) })).status;
    expect(await ask()).toBe(200);

    const list = vitrina(["key", "list"]);
    expect(await list.exited).toBe(0);
    expect(list.output()).toMatch(/^[0-9a-f]{12} {2}admin {5}me {2}expires \d{4}-/);
    expect(list.output()).not.toContain(key.slice(-43));

    const id = key.split("_")[1] as string;
    const revoke = vitrina(["key", "revoke", id]);
    expect(await revoke.exited).toBe(0);
    expect(await ask()).toBe(401);
    const log = await database.query(
      "SELECT actor, action, object FROM etl.audit_log WHERE outcome = 'done' ORDER BY id",
    );
    expect(log).toEqual([
      { actor: "cli", action: "createKey", object: id },
      { actor: "cli", action: "revokeKey", object: id },
    ]);
  });

  it("says what is wrong", async () => {
    const create = vitrina(["key", "create", "--name", "me", "--role", "root"]);
    expect(await create.exited).toBe(64);
    expect(create.output()).toContain("--role");
    const revoke = vitrina(["key", "revoke", "000000000000"]);
    expect(await revoke.exited).toBe(1);
    expect(revoke.output()).toContain('There is no key "000000000000".');
  });
});
