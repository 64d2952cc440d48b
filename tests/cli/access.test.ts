import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliBench, openCliBench } from "../support/cli.ts";

/** The command line against an API that wants a login. */

let bench: CliBench;
let viewerKey: string;
beforeAll(async () => {
  bench = await openCliBench({ API_AUTH: "required" });
  await bench.startApi();
  const creating = bench.spawnCli(["key", "create", "--name", "looker", "--role", "viewer"], {
    DATABASE_URL: bench.database.url,
  });
  const created = await creating.result;
  expect(created.code).toBe(0);
  viewerKey = created.stdout.trim();
});
afterAll(() => bench?.stop());

describe("an API that wants a login", () => {
  it("4 without a key, with a wrong one, and with one that may not do it", async () => {
    const env = { VITRINA_API_KEY: viewerKey };
    const attempts = await Promise.all([
      bench.cli(["list"]),
      bench.cli(["list"], { VITRINA_API_KEY: `${viewerKey.slice(0, -1)}!` }),
      bench.cli(["run", "anything"], env),
      bench.cli(["run", "anything", "something"], env),
    ]);
    for (const { code, stdout, stderr } of attempts) {
      expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
      expect(stderr).toMatch(/^vitrina: .*\.\n {2}\S.*\.\n$/);
      expect(stderr).not.toContain(viewerKey.slice(-20));
    }
  });

  it("takes the key from the environment, .env, or a file, never from the command line", async () => {
    const empty = { items: [], next: null };
    const inFile = await bench.write("key.txt", `${viewerKey}\n`);
    const results = await Promise.all([
      bench.cli(["list", "-o", "json"], { VITRINA_API_KEY: viewerKey }),
      bench.cli(["list", "-o", "json", "--key-file", inFile], { VITRINA_API_KEY: "wrong" }),
      bench.cli(["list", "-o", "json", "--key-file", join(bench.folder, inFile)]),
    ]);
    for (const { stdout, stderr } of results)
      expect({ stderr, page: JSON.parse(stdout) }).toEqual({ stderr: "", page: empty });
    await bench.write(".env", `VITRINA_API_KEY=${viewerKey}\n`);
    expect(await bench.json(["list"])).toEqual(empty);
  });

  it("refuses a file that does not hold a key, without showing what it holds", async () => {
    const file = await bench.write("notes.txt", "canary one\ncanary two\n");
    const { code, stderr } = await bench.cli(["list", "--key-file", file]);
    expect(code).toBe(64);
    expect(stderr).not.toContain("canary");
  });
});
