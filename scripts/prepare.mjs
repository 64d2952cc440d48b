// Makes a fresh clone ready to run: installs the dependencies and compiles the sources when they are missing or
// out of date. Only Node.js built-ins here: nothing else exists yet when this runs.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const inRoot = (...parts) => join(root, ...parts);

function fail(message) {
  console.error(`vitrina: ${message}`);
  process.exit(1);
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  fail(`Node.js 20.19 or newer is needed; this is ${process.versions.node}. Install a newer one and try again.`);
}

function hashOf(files) {
  const hash = createHash("sha256");
  for (const file of files)
    hash
      .update(file)
      .update("\0")
      .update(readFileSync(inRoot(file)))
      .update("\0");
  return hash.digest("hex");
}

function readIfThere(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** Whether a platform-specific package is for this machine: `os`, `cpu` and `libc` as npm reads them. */
function isForThisMachine({ os, cpu, libc }) {
  const fits = (list, own) => !list || (list.includes(own) && !list.includes(`!${own}`));
  const ownLibc = () => (process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl");
  return fits(os, process.platform) && fits(cpu, process.arch) && (!libc || fits(libc, ownLibc()));
}

/** npm writes what it installed into node_modules as its last step: complete, or not there. */
function dependenciesAreInstalled() {
  const installedFile = inRoot("node_modules", ".package-lock.json");
  if (!existsSync(installedFile)) return false;
  const wanted = JSON.parse(readFileSync(inRoot("package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(installedFile, "utf8")).packages;
  const own = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
    if (JSON.stringify(own[kind]) !== JSON.stringify(wanted[""][kind])) return false;
  }
  const mayBeMissing = (path, entry) => {
    if (!entry.optional) return false;
    // Optional without a platform: a dependency of packages for other machines. Our own are all wanted.
    const hasMachine = entry.os || entry.cpu || entry.libc;
    const isOurs = path.slice("node_modules/".length) in (own.optionalDependencies ?? {});
    return hasMachine ? !isForThisMachine(entry) : !isOurs;
  };
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const found = installed[path];
    if (!found) return mayBeMissing(path, entry);
    return found.version === entry.version && found.integrity === entry.integrity && existsSync(inRoot(path));
  });
}

function installDependencies() {
  if (dependenciesAreInstalled()) return;
  console.error("Installing dependencies (once) …");
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const result = spawnSync(
    npm,
    ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"],
    {
      cwd: root,
      stdio: ["ignore", 2, 2],
      shell: process.platform === "win32",
    },
  );
  if (result.error) fail(`npm could not be started (${result.error.message}). Is it on the PATH?`);
  if (result.status !== 0)
    fail("the dependencies could not be installed; npm's message is above. Check the network and try again.");
}

function filesBelow(folder) {
  return readdirSync(inRoot(folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => statSync(inRoot(file)).isFile())
    .sort();
}

function compile() {
  const stamp = inRoot("dist", ".built-from");
  const wanted = hashOf([...filesBelow("src"), "tsconfig.json", "tsconfig.build.json", "package-lock.json"]);
  if (readIfThere(stamp) === wanted) return;
  rmSync(inRoot("dist"), { recursive: true, force: true });
  try {
    execFileSync(process.execPath, [inRoot("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.build.json"], {
      cwd: root,
      stdio: ["ignore", 2, 2],
    });
  } catch {
    fail("the sources do not compile; the compiler's message is above.");
  }
  cpSync(inRoot("src", "meta-store", "migrations"), inRoot("dist", "meta-store", "migrations"), { recursive: true });
  writeFileSync(stamp, wanted);
}

installDependencies();
// The image has a separate layer for the dependencies, built before the sources are copied.
if (process.argv[2] !== "--only-install") compile();
