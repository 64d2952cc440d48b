import { lstat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { errorCode, isMissing, readIfThere } from "./data-dir.ts";
import { copyForOthers } from "./readable-copy.ts";
import { runProgram } from "./run-program.ts";
import type { ServerUser } from "./server-user.ts";

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Binaries that were seen to run as the server's user. */
export interface CheckedBinaries extends PostgresBinaries {
  readonly majorVersion: number;
}

/** The binaries that npm installed for this machine. */
export function installedBinaries(): PostgresBinaries {
  if (process.platform === "win32") {
    throw new VitrinaError("EMBEDDED_POSTGRES_FAILED", "The embedded PostgreSQL does not run on Windows.", {
      hint: "Run Vitrina in WSL, or set DATABASE_URL to a PostgreSQL of your own.",
    });
  }
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // Resolved from embedded-postgres, whose dependency it is: not every package manager puts it beside ours.
    const family = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    return binariesIn(join(dirname(family.resolve(name)), "..", "native"));
  } catch (cause) {
    throw new VitrinaError(
      "EMBEDDED_POSTGRES_FAILED",
      `The embedded PostgreSQL for this machine (npm package ${name}) is not installed.`,
      { cause, hint: "Install with optional dependencies, or set DATABASE_URL to a PostgreSQL of your own." },
    );
  }
}

function binariesIn(native: string): PostgresBinaries {
  return { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") };
}

/** Makes sure that `user` can run the binaries, and returns their version. */
export async function prepareBinaries(
  binaries: PostgresBinaries,
  user: ServerUser | undefined,
  copiesFolder: string,
): Promise<CheckedBinaries> {
  const native = dirname(dirname(binaries.postgres));
  await makeMissingLinks(native);
  const direct = await checkBinaries(binaries, user);
  if ("majorVersion" in direct) return direct;
  if (!user) throw doNotRun(binaries, direct.failure);
  const copy = binariesIn(await copyForOthers(native, copiesFolder));
  const copied = await checkBinaries(copy, user);
  if ("majorVersion" in copied) return copied;
  throw doNotRun(copy, copied.failure);
}

async function checkBinaries(
  binaries: PostgresBinaries,
  user: ServerUser | undefined,
): Promise<CheckedBinaries | { failure: string }> {
  const { succeeded, output } = await runProgram(binaries.postgres, ["--version"], user);
  const version = /PostgreSQL\) (\d+)/.exec(output)?.[1];
  return succeeded && version ? { ...binaries, majorVersion: Number(version) } : { failure: output.trim() };
}

function doNotRun(binaries: PostgresBinaries, failure: string): VitrinaError {
  return new VitrinaError(
    "EMBEDDED_POSTGRES_FAILED",
    `The PostgreSQL program ${binaries.postgres} does not run on this machine: ${failure}.`,
    { hint: "Set DATABASE_URL to a PostgreSQL of your own." },
  );
}

/** npm packages hold no links; the package makes them after its installation, unless install scripts are blocked. */
async function makeMissingLinks(native: string): Promise<void> {
  const list = await readIfThere(join(native, "pg-symlinks.json"));
  if (list === undefined) return;
  try {
    for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
      await linkIfMissing(join(native, "..", source), join(native, "..", target));
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new VitrinaError(
      "EMBEDDED_POSTGRES_FAILED",
      `The links that PostgreSQL needs below ${native} are missing and cannot be made: ${reason}.`,
      { cause, hint: "Install the dependencies with install scripts allowed, or make that folder writable." },
    );
  }
}

async function linkIfMissing(source: string, target: string): Promise<void> {
  try {
    await lstat(target);
  } catch (missing) {
    if (!isMissing(missing)) throw missing;
    await symlink(relative(dirname(target), source), target).catch((error: unknown) => {
      // Another start created it at the same moment.
      if (errorCode(error) !== "EEXIST") throw error;
    });
  }
}
