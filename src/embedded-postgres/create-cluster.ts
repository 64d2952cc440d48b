import { appendFile, chown, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type DataDir, readIfThere } from "./data-dir.ts";
import type { CheckedBinaries } from "./postgres-binaries.ts";
import { runProgram } from "./run-program.ts";
import { handOver, type ServerUser } from "./server-user.ts";

const DRAFT_PREFIX = "postgres-new-";

export interface NewCluster {
  readonly binaries: CheckedBinaries;
  readonly user: ServerUser | undefined;
  readonly password: string;
  /** Whether to wait until the new files are safe on disk. */
  readonly sync: boolean;
}

/** The major version of the PostgreSQL that made the cluster; undefined when there is none. */
export async function clusterVersion(dir: DataDir): Promise<number | undefined> {
  const text = await readIfThere(join(dir.cluster, "PG_VERSION"));
  return text === undefined ? undefined : Number.parseInt(text, 10);
}

/** Creates the cluster in a temporary folder, so that a folder with the final name is always complete. */
export async function createCluster(dir: DataDir, cluster: NewCluster): Promise<void> {
  await removeDrafts(dir);
  const draft = await mkdtemp(join(dir.root, DRAFT_PREFIX));
  try {
    const passwordFile = join(draft, "password");
    await writeFile(passwordFile, cluster.password, { mode: 0o600 });
    if (cluster.user) {
      for (const path of [draft, passwordFile]) await chown(path, cluster.user.uid, cluster.user.gid);
    }
    await runInitdb(dir, draft, cluster);
    await rename(join(draft, "cluster"), dir.cluster);
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** An initdb that outlived its Vitrina may still write there, hence the retries. */
async function removeDrafts(dir: DataDir): Promise<void> {
  for (const name of await readdir(dir.root)) {
    if (name.startsWith(DRAFT_PREFIX)) {
      await rm(join(dir.root, name), { recursive: true, force: true, maxRetries: 5 });
    }
  }
}

async function runInitdb(dir: DataDir, draft: string, { binaries, user, sync }: NewCluster): Promise<void> {
  const folder = await handOver(draft, user);
  try {
    const args = [
      `--pgdata=${folder.path}/cluster`,
      "--username=vitrina",
      `--pwfile=${folder.path}/password`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      // Without it, upper, lower and patterns would only handle ASCII.
      ...(binaries.majorVersion >= 17 ? ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] : []),
      ...(sync ? [] : ["--no-sync"]),
    ];
    const { succeeded, output } = await runProgram(binaries.initdb, args, user, folder.fds);
    await appendFile(dir.log, output, { mode: 0o600 });
    if (!succeeded) throw initdbFailed(dir, output);
  } finally {
    await folder.close();
  }
}

function initdbFailed(dir: DataDir, output: string): VitrinaError {
  const lines = output.trim().split("\n");
  const reason = lines.findLast((line) => /(error|FATAL|PANIC): /.test(line)) ?? lines.at(-1) ?? "no message";
  return new VitrinaError(
    "EMBEDDED_POSTGRES_FAILED",
    `The database cluster in ${dir.cluster} could not be created: ${reason.trim()} (log: ${dir.log}).`,
    { extra: { log_lines: lines.slice(-20) } },
  );
}
