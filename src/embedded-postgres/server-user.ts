import { constants, open, readFile, stat } from "node:fs/promises";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type DataDir, isMissing } from "./data-dir.ts";

/** The account that PostgreSQL runs under when Vitrina is root, because PostgreSQL refuses to be root. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** Undefined means: the account that runs Vitrina. */
export async function chooseServerUser(dir: DataDir): Promise<ServerUser | undefined> {
  const ownUid = process.getuid?.();
  const owner = await ownerOf(dir.cluster);
  if (ownUid !== 0) {
    if (owner && owner.uid !== ownUid) throw belongsToAnother(dir, owner);
    return undefined;
  }
  if (owner && owner.uid !== 0) return owner;
  const accounts = await readFile("/etc/passwd", "utf8");
  const account = accountNamed(accounts, "postgres") ?? accountNamed(accounts, "nobody");
  if (account) return account;
  throw new VitrinaError(
    "EMBEDDED_POSTGRES_FAILED",
    "PostgreSQL cannot run as root, and this system has neither a user postgres nor a user nobody to run it.",
    { hint: "Start Vitrina as an ordinary user, or set DATABASE_URL to a PostgreSQL of your own." },
  );
}

async function ownerOf(folder: string): Promise<ServerUser | undefined> {
  try {
    const { uid, gid } = await stat(folder);
    return { uid, gid };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function accountNamed(passwd: string, name: string): ServerUser | undefined {
  const fields = passwd
    .split("\n")
    .find((line) => line.startsWith(`${name}:`))
    ?.split(":");
  return fields ? { uid: Number(fields[2]), gid: Number(fields[3]) } : undefined;
}

function belongsToAnother(dir: DataDir, owner: ServerUser): VitrinaError {
  return new VitrinaError(
    "DATA_DIR_UNUSABLE",
    `The database in ${dir.cluster} belongs to another user (id ${owner.uid}).`,
    { hint: "Start Vitrina as the user who made it (perhaps root), or set VITRINA_DATA_DIR to another folder." },
  );
}

/** A folder's path for a child process, and the file descriptors it needs for that, from number 3 on. */
export interface HandedFolder {
  readonly path: string;
  readonly fds: readonly number[];
  close(): Promise<void>;
}

/**
 * Root may keep the data below a folder that is closed to everyone else, such as /root. The server's user cannot get
 * there by any path, but it can through a folder that root has opened for it.
 */
export async function handOver(folder: string, user: ServerUser | undefined): Promise<HandedFolder> {
  if (!user || process.platform !== "linux") return { path: folder, fds: [], close: async () => {} };
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: "/proc/self/fd/3", fds: [handle.fd], close: () => handle.close() };
}
