import { randomUUID } from "node:crypto";
import { link, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { dataDirUnusable, errorCode, openDataDir, readIfThere } from "./data-dir.ts";

/**
 * One Vitrina per data folder. The holder listens on a local port and answers with a random id; the file
 * `instance-<n>.json` names the port and the id. The kernel closes the port when the holder dies, even by SIGKILL, and
 * the id distinguishes the holder from another program that got its port or its process id later.
 *
 * The highest n counts, n only grows, and a file appears complete and at most once (a hard link fails when the name
 * exists). So of two programs that find the same dead holder, exactly one gets n + 1. A single file that each
 * removes and recreates would let both of them in.
 */
export interface DataDirLock {
  release(): Promise<void>;
}

interface FolderClaim {
  readonly port: number;
  readonly id: string;
  readonly pid: number;
}

const CLAIM_FILE = /^instance-(\d+)\.json$/;

/** Gives a busy holder time to answer. */
const ANSWER_TIMEOUT_MS = 5_000;

export async function lockDataDir(folder: string): Promise<DataDirLock> {
  const { root } = await openDataDir(folder);
  const id = randomUUID();
  const server = await answerWith(id);
  const release = () => new Promise<void>((resolve) => server.close(() => resolve()));
  try {
    const { port } = server.address() as AddressInfo;
    await takeClaim(root, { port, id, pid: process.pid });
    return { release };
  } catch (error) {
    await release();
    throw error instanceof VitrinaError ? error : dataDirUnusable(root, error);
  }
}

/** The server lets the process end: the lock is held for as long as the process lives, not longer. */
function answerWith(id: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.unref().end(id, () => socket.destroy());
  });
  server.unref();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}

async function takeClaim(root: string, claim: FolderClaim): Promise<void> {
  const draft = join(root, `instance-${claim.id}.new`);
  await writeFile(draft, JSON.stringify(claim), { mode: 0o600 });
  try {
    for (;;) {
      const highest = Math.max(0, ...(await claimNumbers(root)));
      await refuseIfHeld(root, highest);
      if (await linkUnlessThere(draft, claimFile(root, highest + 1))) {
        await removeClaimsUpTo(root, highest);
        return;
      }
    }
  } finally {
    await rm(draft, { force: true });
  }
}

const claimFile = (root: string, number: number): string => join(root, `instance-${number}.json`);

async function claimNumbers(root: string): Promise<number[]> {
  const names = await readdir(root);
  return names.flatMap((name) => CLAIM_FILE.exec(name)?.[1] ?? []).map(Number);
}

async function removeClaimsUpTo(root: string, highest: number): Promise<void> {
  for (const number of await claimNumbers(root)) {
    if (number <= highest) await rm(claimFile(root, number), { force: true });
  }
}

async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

async function refuseIfHeld(root: string, number: number): Promise<void> {
  const claim = parseClaim(await readIfThere(claimFile(root, number)));
  if (!claim || !(await isHeld(claim))) return;
  throw new VitrinaError(
    "DATA_DIR_IN_USE",
    `Vitrina is already running on the data folder ${root} (process ${claim.pid}).`,
  );
}

/** An unreadable file names no holder: it is what a power failure leaves. */
function parseClaim(text: string | undefined): FolderClaim | undefined {
  try {
    const { port, id, pid } = JSON.parse(text ?? "") as Partial<FolderClaim>;
    return port && id && pid ? { port, id, pid } : undefined;
  } catch {
    return undefined;
  }
}

async function isHeld(claim: FolderClaim): Promise<boolean> {
  const answer = await askId(claim.port);
  // Silence: another program on the port, or a holder whose event loop is blocked. Then the process id decides.
  return answer === "silent" ? isAlive(claim.pid) : answer.id === claim.id;
}

function askId(port: number): Promise<{ id: string } | "silent"> {
  return new Promise((resolve) => {
    let id = "";
    const socket = connect({ port, host: "127.0.0.1" });
    socket.setEncoding("utf8");
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => {
      resolve("silent");
      socket.destroy();
    });
    socket.on("data", (text: string) => {
      id += text;
      // An id has 36 characters; another program may send endlessly.
      if (id.length > 100) socket.destroy();
    });
    socket.on("error", () => resolve({ id: "" }));
    socket.on("close", () => resolve({ id }));
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}
