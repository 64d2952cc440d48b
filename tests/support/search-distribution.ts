import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream, existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inflateRawSync } from "node:zlib";

/**
 * Real servers for the search suite: the smallest distributions that their makers publish as Maven artifacts. They are
 * fetched once into .cache and never committed.
 */

export const SEARCH_SERVERS = {
  elasticsearch9: { family: "elasticsearch", version: "9.5.0", leastJava: 21 },
  elasticsearch8: { family: "elasticsearch", version: "8.19.21", leastJava: 17 },
  opensearch3: { family: "opensearch", version: "3.6.0", leastJava: 21 },
  opensearch2: { family: "opensearch", version: "2.19.6", leastJava: 11 },
} as const;
export type SearchServerName = keyof typeof SEARCH_SERVERS;

const CACHE = fileURLToPath(new URL("../../.cache/search", import.meta.url));
/** Root starts the servers as somebody else, who may not be let into the folder of the repository. */
const UNPACKED = process.getuid?.() === 0 ? join(tmpdir(), "vitrina-search") : CACHE;
const CENTRAL = "https://repo1.maven.org/maven2";

export interface Distribution {
  readonly family: "elasticsearch" | "opensearch";
  /** The unpacked folder; shared, so nothing is written into it. */
  readonly folder: string;
  readonly javaHome: string;
}

export async function fetchDistribution(name: SearchServerName): Promise<Distribution> {
  const { family, version, leastJava } = SEARCH_SERVERS[name];
  const javaHome = await findJava(leastJava);
  if (javaHome === undefined) throw new Error(`${name} needs Java ${leastJava} or newer`);
  const folder = join(UNPACKED, `${family}-${version}`);
  if (!existsSync(folder)) await unpack(await download(family, version), folder);
  return { family, folder, javaHome };
}

async function download(family: string, version: string): Promise<string> {
  const file = join(CACHE, `${family}-${version}.zip`);
  if (existsSync(file)) return file;
  const group = family === "opensearch" ? "org/opensearch" : "org/elasticsearch";
  const url = `${repositoryUrl()}/${group}/distribution/integ-test-zip/${family}/${version}/${family}-${version}.zip`;
  await mkdir(CACHE, { recursive: true });
  const response = await fetch(url);
  if (!response.ok || response.body === null)
    throw new Error(`${family} ${version} cannot be fetched (${response.status})`);
  const part = `${file}.${process.pid}.part`;
  await pipeline(Readable.fromWeb(response.body as never), createWriteStream(part));
  await requireChecksum(part, url);
  await rename(part, file);
  return file;
}

async function requireChecksum(file: string, url: string): Promise<void> {
  const response = await fetch(`${url}.sha1`);
  if (!response.ok) throw new Error(`the checksum cannot be fetched (${response.status})`);
  const [wanted] = (await response.text()).trim().split(/\s/);
  const found = createHash("sha1")
    .update(await readFile(file))
    .digest("hex");
  if (found !== wanted) throw new Error(`${file} is damaged: delete it and try again`);
}

/** MAVEN_REPOSITORY_URL, or the mirror of the user's own Maven settings, or Maven Central. */
function repositoryUrl(): string {
  const given = process.env["MAVEN_REPOSITORY_URL"];
  if (given !== undefined && given !== "") return given.replace(/\/$/, "");
  const settings = join(homedir(), ".m2", "settings.xml");
  const text = existsSync(settings) ? readFileSync(settings, "utf8").replace(/<!--.*?-->/gs, "") : "";
  const mirrors = [...text.matchAll(/<mirror>(.*?)<\/mirror>/gs)].map(([, mirror]) => mirror as string);
  const mirror = mirrors.find((one) => /<mirrorOf>\s*(?:\*|central|external:\*)/.test(one));
  return /<url>\s*(.*?)\s*<\/url>/.exec(mirror ?? "")?.[1]?.replace(/\/$/, "") ?? CENTRAL;
}

/** The oldest Java that is new enough: a server runs best on the Java of its time. */
async function findJava(leastMajor: number): Promise<string | undefined> {
  const installed = existsSync("/usr/lib/jvm")
    ? readdirSync("/usr/lib/jvm").map((name) => join("/usr/lib/jvm", name))
    : [];
  const homes = [process.env["JAVA_HOME"], ...installed].filter((home) => home !== undefined && home !== "");
  const found = await Promise.all(homes.map(async (home) => ({ home, major: await javaMajor(home as string) })));
  const fitting = found.filter(({ major }) => major >= leastMajor).sort((a, b) => a.major - b.major);
  return fitting[0]?.home;
}

async function javaMajor(home: string): Promise<number> {
  try {
    const { stderr } = await promisify(execFile)(join(home, "bin", "java"), ["-version"]);
    return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Node.js has no unzip; a zip file is a list of entries at its end, and each of them is deflated or stored. */
async function unpack(zip: string, folder: string): Promise<void> {
  const bytes = await readFile(zip);
  const end = bytes.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
  const temporary = `${folder}.${process.pid}.part`;
  let at = bytes.readUInt32LE(end + 16);
  for (let entry = bytes.readUInt16LE(end + 10); entry > 0; entry--) {
    const [method, size, nameLength] = [
      bytes.readUInt16LE(at + 10),
      bytes.readUInt32LE(at + 20),
      bytes.readUInt16LE(at + 28),
    ];
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
