import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { VitrinaError } from "../domain/error-catalogue.ts";

/** Where everything in a data folder is. */
export interface DataDir {
  /** The folder itself, absolute and without links, so that the same folder is always written the same way. */
  readonly root: string;
  readonly cluster: string;
  readonly passwordFile: string;
  readonly portFile: string;
  readonly log: string;
}

function dataDirAt(root: string): DataDir {
  return {
    root,
    cluster: join(root, "postgres"),
    passwordFile: join(root, "postgres-password"),
    portFile: join(root, "postgres-port"),
    log: join(root, "postgres.log"),
  };
}

/** Creates the folder when it is missing, and makes sure that files can be made in it. */
export async function openDataDir(folder: string): Promise<DataDir> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const root = await realpath(folder);
    await access(root, constants.W_OK | constants.X_OK);
    return dataDirAt(root);
  } catch (cause) {
    throw dataDirUnusable(resolve(folder), cause);
  }
}

/** The folder as it is; undefined when there is none. */
export async function existingDataDir(folder: string): Promise<DataDir | undefined> {
  try {
    return dataDirAt(await realpath(folder));
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw dataDirUnusable(resolve(folder), cause);
  }
}

export function dataDirUnusable(folder: string, cause: unknown): VitrinaError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new VitrinaError("DATA_DIR_UNUSABLE", `The data folder ${folder} cannot be used: ${reason}.`, { cause });
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

export function isMissing(error: unknown): boolean {
  return errorCode(error) === "ENOENT";
}

export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Other processes, and the next start after a crash, see the old text or the new one, never a part of it. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.new`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, file);
}

export async function readPassword(dir: DataDir): Promise<string | undefined> {
  return (await readIfThere(dir.passwordFile))?.trim() || undefined;
}

export async function createPassword(dir: DataDir): Promise<string> {
  const password = randomBytes(24).toString("base64url");
  await writeWhole(dir.passwordFile, `${password}\n`);
  return password;
}

export async function readLastPort(dir: DataDir): Promise<number | undefined> {
  const port = Number(await readIfThere(dir.portFile));
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}

export async function rememberPort(dir: DataDir, port: number): Promise<void> {
  await writeWhole(dir.portFile, `${port}\n`);
}
