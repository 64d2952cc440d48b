import { setTimeout as delay } from "node:timers/promises";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { StuckBackend } from "../../observability/stuck-backends.ts";
import { type Client, type ConnectionOptions, connectForData } from "../../postgres/connection.ts";

/** Extra time for the server to enforce its own limits. */
const GRACE_MS = 2000;
/** How long a backend may take to end. */
const ENDING_MS = 5000;

export interface Watched {
  readonly url: string;
  readonly applicationName: string;
  /** Called with a backend that does not end even when asked to. */
  readonly onStuck?: ((backend: StuckBackend) => void) | undefined;
}

/**
 * Ends `work` when its time is up, whatever the server does. A server checks statement_timeout only in some places:
 * while it plans, neither that nor a request to end reaches it. So the connection is given up, the backend is asked to
 * end through another one, and the caller gets an answer.
 */
export async function withDeadline<T>(
  client: Client,
  timeoutMs: number,
  watched: Watched,
  work: () => Promise<T>,
): Promise<T> {
  const { processID: pid } = client as unknown as { processID: number };
  let isOverdue = false;
  const timer = setTimeout(() => {
    isOverdue = true;
    void client.end();
    void endBackend(pid, watched);
  }, timeoutMs + GRACE_MS);
  try {
    return await work();
  } catch (error) {
    if (!isOverdue) throw error;
    const seconds = Math.round((timeoutMs + GRACE_MS) / 1000);
    const message = `Could not read the source: it did not answer within ${seconds} s, and was given up (backend ${pid}).`;
    throw new VitrinaError("STATEMENT_TIMEOUT", message, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Best effort: the server may be out of reach, or out of connections. */
async function endBackend(pid: number, { url, applicationName, onStuck }: Watched): Promise<void> {
  const options: ConnectionOptions = { url, applicationName: `${applicationName} (ending ${pid})` };
  const client = await connectForData(options).catch(() => undefined);
  if (client === undefined) {
    onStuck?.({ pid, applicationName });
    return;
  }
  try {
    // The number may already belong to somebody else.
    const isThere = "FROM pg_stat_activity WHERE pid = $1 AND application_name = $2";
    for (let waitedMs = 0; waitedMs < ENDING_MS; waitedMs += 500) {
      const { rowCount } = await client.query(`SELECT pg_terminate_backend(pid) ${isThere}`, [pid, applicationName]);
      if (rowCount === 0) return;
      await delay(500);
    }
    onStuck?.({ pid, applicationName });
  } catch {
    onStuck?.({ pid, applicationName });
  } finally {
    await client.end();
  }
}
