// Real servers for the search suite: the smallest distributions that their makers publish as Maven artifacts. They are
// fetched once into .cache and never committed.
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inflateRawSync } from "node:zlib";

/** The checksums are kept here: what a repository says about its own file proves little, and not all say it. */
export const SEARCH_SERVERS = {
  opensearch3: {
    family: "opensearch",
    version: "3.6.0",
    leastJava: 21,
    sha256: "a91faa1dc1cadc78cb278b4f63847e19e1627a4e9de698e14e7efc14ee37b286",
  },
  elasticsearch9: {
    family: "elasticsearch",
    version: "9.5.0",
    leastJava: 21,
    sha256: "db0e275fd790f723eca7bcde96069fd6fed304ad23afdb70c8c09553dd9e8b1b",
  },
  elasticsearch8: {
    family: "elasticsearch",
    version: "8.19.21",
    leastJava: 17,
    sha256: "215d5f3dbf0609a149f6218a9e47b6ae2df34ebbff3c5754e35f15a5e5393c8a",
  },
  opensearch2: {
    family: "opensearch",
    version: "2.19.6",
    leastJava: 11,
    sha256: "71d6d8b1c637f3faecda0752b184b1cc526fc6eaad59ec1408c6327bb00b9293",
  },
};

const CACHE = fileURLToPath(new URL("../.cache/search", import.meta.url));
// Root starts the servers as another user, who may have no access to the folder of the repository.
const UNPACKED = process.getuid?.() === 0 ? join(tmpdir(), "vitrina-search") : CACHE;
const CENTRAL = "https://repo1.maven.org/maven2";

/** Throws when there is no Java for it, or when it cannot be fetched. */
export async function fetchDistribution(name) {
  const { family, version, leastJava, sha256 } = SEARCH_SERVERS[name];
  const javaHome = await findJava(leastJava);
  if (javaHome === undefined) throw new Error(`${name} needs Java ${leastJava} or newer`);
  const folder = join(UNPACKED, `${family}-${version}`);
  if (!existsSync(folder)) await unpack(await download(family, version, sha256), folder);
  return { family, folder, javaHome };
}

async function download(family, version, sha256) {
  const file = join(CACHE, `${family}-${version}.zip`);
  if (existsSync(file)) return file;
  const url = `${repositoryUrl()}/org/${family}/distribution/integ-test-zip/${family}/${version}/${family}-${version}.zip`;
  await mkdir(CACHE, { recursive: true });
  const response = await fetchOrFail(url);
  const part = `${file}.${process.pid}.part`;
  try {
    const hash = createHash("sha256");
    const hashed = new Transform({
      transform(chunk, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    });
    await pipeline(Readable.fromWeb(response.body), hashed, createWriteStream(part));
    if (hash.digest("hex") !== sha256) throw new Error(`${family} ${version} arrived damaged`);
    await rename(part, file);
  } finally {
    await rm(part, { force: true });
  }
  return file;
}

async function fetchOrFail(url) {
  const response = await fetch(url).catch((error) => {
    throw new Error(`the Maven repository cannot be reached (${error.cause?.code ?? error.message})`);
  });
  if (!response.ok) throw new Error(`the Maven repository answered ${response.status}`);
  return response;
}

/** MAVEN_REPOSITORY_URL, or the mirror of the user's own Maven settings, or Maven Central. */
function repositoryUrl() {
  const given = process.env.MAVEN_REPOSITORY_URL;
  if (given) return given.replace(/\/$/, "");
  const settings = join(homedir(), ".m2", "settings.xml");
  const text = existsSync(settings) ? readFileSync(settings, "utf8").replace(/<!--.*?-->/gs, "") : "";
  const mirrors = [...text.matchAll(/<mirror>(.*?)<\/mirror>/gs)].map(([, mirror]) => mirror);
  const mirror = mirrors.find((one) => /<mirrorOf>\s*(?:\*|central|external:\*)/.test(one));
  return /<url>\s*(.*?)\s*<\/url>/.exec(mirror ?? "")?.[1]?.replace(/\/$/, "") ?? CENTRAL;
}

/** The oldest Java that is new enough: a server runs best on the Java of its time. */
async function findJava(leastMajor) {
  const folder = "/usr/lib/jvm";
  const installed = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  const homes = [process.env.JAVA_HOME, ...installed].filter(Boolean);
  const found = await Promise.all(homes.map(async (home) => ({ home, major: await javaMajor(home) })));
  return found.filter(({ major }) => major >= leastMajor).sort((a, b) => a.major - b.major)[0]?.home;
}

async function javaMajor(home) {
  try {
    const { stderr } = await promisify(execFile)(join(home, "bin", "java"), ["-version"]);
    return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Node.js has no unzip; a zip file is a list of entries at its end, and each of them is deflated or stored. */
async function unpack(zip, folder) {
  const bytes = await readFile(zip);
  const end = bytes.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
  const temporary = `${folder}.${process.pid}.part`;
  let at = bytes.readUInt32LE(end + 16);
  for (let entry = bytes.readUInt16LE(end + 10); entry > 0; entry--) {
    const method = bytes.readUInt16LE(at + 10);
    const size = bytes.readUInt32LE(at + 20);
    const nameLength = bytes.readUInt16LE(at + 28);
    const name = bytes.toString("utf8", at + 46, at + 46 + nameLength);
    const header = bytes.readUInt32LE(at + 42);
    const start = header + 30 + bytes.readUInt16LE(header + 26) + bytes.readUInt16LE(header + 28);
    at += 46 + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
    const file = join(temporary, ...name.split("/").slice(1));
    if (name.endsWith("/")) {
      await mkdir(file, { recursive: true });
      continue;
    }
    const packed = bytes.subarray(start, start + size);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, method === 0 ? packed : inflateRawSync(packed));
    if (dirname(file).endsWith("bin")) await chmod(file, 0o755);
  }
  await rename(temporary, folder);
}

const START_TIMEOUT_MS = 180_000;
const LOOK_EVERY_MS = 200;

/** One node on loopback, in a temporary folder. It can be killed, as by a power failure, and started again. */
export async function startSearchServer(name) {
  const distribution = await fetchDistribution(name);
  const folder = await mkdtemp(join(tmpdir(), `vitrina-${name}-`));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await cp(join(distribution.folder, "config"), join(folder, "config"), { recursive: true });
  for (const part of ["data", "logs", "tmp"]) await mkdir(join(folder, part));
  await keepLogsOutside(join(folder, "config", "jvm.options"));
  const file = join(folder, "config", `${distribution.family}.yml`);
  await writeFile(file, serverSettings(distribution, folder, port, await freePort()));
  const user = await serverUser();
  if (user !== undefined) await giveTo(folder, user);

  let child;
  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null;
  const answers = () =>
    fetch(`${url}/_cluster/health?timeout=1s`).then(
      ({ ok }) => ok,
      () => false,
    );
  const start = async () => {
    child = launch(distribution, folder, user);
    for (const deadline = Date.now() + START_TIMEOUT_MS; !(await answers()); await delay(LOOK_EVERY_MS)) {
      if (isRunning() && Date.now() < deadline) continue;
      throw new Error(`${name} did not start:\n${readFileSync(join(folder, "output.log"), "utf8").slice(-3000)}`);
    }
  };
  /** The launcher has the server as its child; both are of one process group. */
  const kill = async () => {
    if (!isRunning()) return;
    const gone = once(child, "exit");
    process.kill(-child.pid, "SIGKILL");
    await gone;
    while (await answers()) await delay(LOOK_EVERY_MS);
  };
  const killAtExit = () => {
    if (isRunning()) process.kill(-child.pid, "SIGKILL");
  };
  process.once("exit", killAtExit);
  const stop = async () => {
    await kill();
    process.off("exit", killAtExit);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, kill, restart: start, stop };
}

/** The log of the garbage collector would go into the folder of the distribution. */
async function keepLogsOutside(file) {
  const lines = (await readFile(file, "utf8")).split("\n");
  await writeFile(file, lines.filter((line) => !line.includes("gc.log")).join("\n"));
}

function serverSettings({ family }, folder, port, transportPort) {
  const settings = {
    "discovery.type": "single-node",
    "network.host": "127.0.0.1",
    "http.port": port,
    "transport.port": transportPort,
    "path.data": join(folder, "data"),
    "path.logs": join(folder, "logs"),
    // The disk of a test machine may be nearly full.
    "cluster.routing.allocation.disk.threshold_enabled": false,
    ...(family === "elasticsearch" && { "xpack.security.enabled": false }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("");
}

function launch({ family, folder: home, javaHome }, folder, user) {
  const prefix = family === "elasticsearch" ? "ES" : "OPENSEARCH";
  const log = openSync(join(folder, "output.log"), "a");
  return spawn(join(home, "bin", family), [], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      JAVA_HOME: javaHome,
      [`${prefix}_JAVA_HOME`]: javaHome,
      [`${prefix}_JAVA_OPTS`]: "-Xms512m -Xmx512m",
      [`${prefix}_TMPDIR`]: join(folder, "tmp"),
      [`${prefix}_PATH_CONF`]: join(folder, "config"),
    },
    stdio: ["ignore", log, log],
    detached: true,
    ...user,
  });
}

/** The servers refuse to be root. */
async function serverUser() {
  if (process.getuid?.() !== 0) return undefined;
  const line = (await readFile("/etc/passwd", "utf8")).split("\n").find((one) => one.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

async function giveTo(folder, { uid, gid }) {
  await chown(folder, uid, gid);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await giveTo(path, { uid, gid });
    else await chown(path, uid, gid);
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
