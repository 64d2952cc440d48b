import { readdir, readFile, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { lockDataDir } from "../../src/embedded-postgres/data-dir-lock.ts";
import { compileHost, Host, makeFolder, removeFolders } from "../support/embedded-postgres-harness.ts";

const folders: string[] = [];
let hostFolder: string;

async function newFolder(): Promise<string> {
  const folder = await makeFolder();
  folders.push(folder);
  return folder;
}

async function otherVitrina(dataDir: string): Promise<Host> {
  const host = new Host(hostFolder, { behaviour: "lock", options: { dataDir } });
  onTestFinished(async () => {
    host.process.kill("SIGKILL");
    await host.exited();
  });
  expect(await host.nextReport()).toEqual({ event: "locked" });
  return host;
}

/** What a killed Vitrina leaves, with another program on its port. */
async function leaveClaim(dataDir: string, port: number, pid: number): Promise<void> {
  await writeFile(join(dataDir, "instance-7.json"), JSON.stringify({ port, id: "the id of the dead", pid }));
}

async function portOfStranger(greeting: string): Promise<number> {
  const stranger = createServer((socket) => {
    socket.on("error", () => {});
    if (greeting) socket.end(greeting);
  });
  await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  stranger.unref();
  onTestFinished(() => void stranger.close());
  return (stranger.address() as AddressInfo).port;
}

beforeAll(async () => {
  hostFolder = await compileHost();
  folders.push(hostFolder);
});

afterAll(() => removeFolders(folders));

describe("the lock of the data folder", () => {
  it("refuses a second Vitrina, in another process or the same, and says what to do", async () => {
    const dataDir = await newFolder();
    const holder = await otherVitrina(dataDir);
    await expect(lockDataDir(dataDir)).rejects.toMatchObject({
      code: "DATA_DIR_IN_USE",
      message: expect.stringMatching(`${dataDir} \\(process ${holder.process.pid}\\)\\.`),
    });
    const own = await newFolder();
    await lockDataDir(own);
    await expect(lockDataDir(own)).rejects.toMatchObject({ code: "DATA_DIR_IN_USE" });
  });

  it("can be taken after its holder was killed with SIGKILL", async () => {
    const dataDir = await newFolder();
    const holder = await otherVitrina(dataDir);
    await expect(lockDataDir(dataDir)).rejects.toMatchObject({ code: "DATA_DIR_IN_USE" });
    holder.signal("SIGKILL");
    await holder.exited();
    await (await lockDataDir(dataDir)).release();
  });

  it("can be taken after it was released, and leaves one small file", async () => {
    const dataDir = await newFolder();
    for (let round = 0; round < 3; round += 1) await (await lockDataDir(dataDir)).release();
    expect(await readdir(dataDir)).toEqual(["instance-3.json"]);
  });

  it("goes to exactly one of many that find a dead holder at the same moment", async () => {
    for (let round = 0; round < 20; round += 1) {
      const dataDir = await newFolder();
      await leaveClaim(dataDir, 1, process.pid);
      const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataDir(dataDir)));
      expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    }
  });

  it("is not held by another program that got the port, or the process id, of a dead holder", async () => {
    const dataDir = await newFolder();
    await leaveClaim(dataDir, await portOfStranger("220 mail.example ready\r\n"), process.pid);
    const lock = await lockDataDir(dataDir);
    expect(JSON.parse(await readFile(join(dataDir, "instance-8.json"), "utf8"))).toMatchObject({ pid: process.pid });
    await lock.release();
  });

  it("is held by a process that lives but is too busy to answer, not by a dead one", async () => {
    const [busy, dead] = [await newFolder(), await newFolder()];
    const silent = await portOfStranger("");
    const gone = await otherVitrina(await newFolder());
    gone.signal("SIGKILL");
    await gone.exited();
    await leaveClaim(busy, silent, process.pid);
    await leaveClaim(dead, silent, gone.process.pid ?? 0);
    const [whileBusy, afterDeath] = await Promise.allSettled([lockDataDir(busy), lockDataDir(dead)]);
    expect(whileBusy).toMatchObject({ status: "rejected", reason: { code: "DATA_DIR_IN_USE" } });
    expect(afterDeath.status).toBe("fulfilled");
  });

  it("ignores a file that a power failure cut short", async () => {
    const dataDir = await newFolder();
    await writeFile(join(dataDir, "instance-1.json"), '{"port":');
    await (await lockDataDir(dataDir)).release();
  });
});
