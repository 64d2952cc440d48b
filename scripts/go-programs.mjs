import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const cache = join(dirname(dirname(fileURLToPath(import.meta.url))), ".cache", "go");

/** Whatever the user's settings are, Go must not look for a go.mod here. */
const environment = { ...process.env, GOFLAGS: "-mod=mod", GOBIN: cache };

/** The program named by the variable of its name, or from the PATH, or built once from its Go module into .cache. */
export function goProgram(name, goPackage) {
  const given = process.env[name.toUpperCase()];
  if (given) return given;
  if (spawnSync(name, ["--help"], { stdio: "ignore" }).error === undefined) return name;
  const built = join(cache, name);
  if (existsSync(built)) return built;
  console.log(`Building ${name} (once) …`);
  const { status, error } = spawnSync("go", ["install", goPackage], { stdio: "inherit", env: environment });
  if (status === 0) return built;
  throw new Error(
    `${name} is missing and could not be built: ${error?.message ?? "the message is above"}. Install it, or set ${name.toUpperCase()}.`,
  );
}

/** The folder of a Go module, with all its files, not only code. */
export function goModuleFolder(moduleVersion) {
  const { stdout } = spawnSync("go", ["mod", "download", "-json", moduleVersion], {
    encoding: "utf8",
    env: environment,
  });
  const { Dir: folder, Error: trouble } = JSON.parse(stdout || "{}");
  if (folder !== undefined) return folder;
  throw new Error(`The Go module ${moduleVersion} cannot be fetched: ${trouble ?? "is Go installed?"}`);
}
