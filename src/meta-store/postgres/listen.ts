import { type Client, type ConnectionOptions, connect } from "../../postgres/connection.ts";

const RECONNECT_AFTER_MS = 1000;

type Channel = "vitrina_pipelines" | "vitrina_changes";

/**
 * Listens on a connection of its own and comes back after it was lost. `hear` gets what was sent with the
 * notification, and null whenever something may have been missed: at the beginning, and after a lost connection.
 */
export async function listen(
  options: ConnectionOptions,
  channel: Channel,
  hear: (payload: string | null) => void,
): Promise<{ close(): Promise<void> }> {
  let client: Client | undefined;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;

  const start = async (): Promise<void> => {
    const fresh = await connect(options);
    if (closed) return fresh.end();
    client = fresh;
    fresh.on("notification", ({ payload }) => hear(payload ?? null));
    fresh.on("end", startAgain);
    await fresh.query(`LISTEN ${channel}`);
    hear(null);
  };

  const startAgain = (): void => {
    client = undefined;
    if (closed || retry !== undefined) return;
    retry = setTimeout(() => {
      retry = undefined;
      start().catch(startAgain);
    }, RECONNECT_AFTER_MS);
  };

  await start();
  return {
    async close() {
      closed = true;
      clearTimeout(retry);
      await client?.end();
    },
  };
}
