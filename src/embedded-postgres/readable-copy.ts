import { createHash, randomUUID } from "node:crypto";
import { chmod, copyFile, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { isMissing } from "./data-dir.ts";

/**
 * Copies the programs to where every user can read them. PostgreSQL looks for its files by the real path of its
 * program, so a program below a closed folder (root's home) only works for root, which is not allowed to run it.
 * The copy is named after its contents, so it is made once for all data folders and all starts.
 */
export async function copyForOthers(native: string, copiesFolder: string): Promise<string> {
  try {
    const contents = createHash("sha256").update(await readFile(join(native, "bin", "postgres")));
    const copy = join(copiesFolder, `postgres-${contents.digest("hex").slice(0, 16)}`);
    if (!(await isThere(copy))) await copyWhole(native, copy);
    return copy;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new VitrinaError(
      "EMBEDDED_POSTGRES_FAILED",
      `PostgreSQL cannot run as root, other users cannot read ${native}, and copying it to ${copiesFolder} failed: ${reason}.`,
      { cause, hint: "Move Vitrina out of root's home folder, or start it as an ordinary user." },
    );
  }
}

async function isThere(folder: string): Promise<boolean> {
  try {
    return (await stat(folder)).isDirectory();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** A copy that was interrupted never gets the final name. */
async function copyWhole(from: string, to: string): Promise<void> {
  const draft = `${to}.${randomUUID()}`;
  await makeReadableFolder(join(to, ".."));
  try {
    await copyTree(from, draft);
    await rename(draft, to).catch(async (error: unknown) => {
      // Another start was faster; its copy is as good.
      if (!(await isThere(to))) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** The mode is set separately because the umask may close new files to others. */
async function makeReadableFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
}

async function copyTree(from: string, to: string): Promise<void> {
  await makeReadableFolder(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target);
    else {
      await copyFile(source, target);
      await chmod(target, 0o755);
    }
  }
}
