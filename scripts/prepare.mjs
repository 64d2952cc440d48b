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

function installDependencies() {
  const stamp = inRoot("node_modules", ".vitrina-installed");
  const wanted = hashOf(["package.json", "package-lock.json"]);
  if (readIfThere(stamp) === wanted) return;
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
  writeFileSync(stamp, wanted);
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
// The image keeps the dependencies in a layer of their own, made before the sources are there.
if (process.argv[2] !== "--only-install") compile();
