import { type Client, type ConnectionOptions, connect } from "../../postgres/connection.ts";

const RECONNECT_AFTER_MS = 1000;

/** Listens on a connection of its own and comes back after it was lost. Polling covers what is missed meanwhile. */
export async function listenForWork(options: ConnectionOptions, wake: () => void): Promise<{ close(): Promise<void> }> {
  let client: Client | undefined;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;

  const listen = async (): Promise<void> => {
    const fresh = await connect(options);
    if (closed) return fresh.end();
    client = fresh;
    fresh.on("notification", wake);
    fresh.on("end", listenAgain);
    await fresh.query("LISTEN vitrina_pipelines");
    wake(); // whatever was asked for while nobody listened
  };

  const listenAgain = (): void => {
    client = undefined;
    if (closed || retry !== undefined) return;
    retry = setTimeout(() => {
      retry = undefined;
      listen().catch(listenAgain);
    }, RECONNECT_AFTER_MS);
  };

  await listen();
  return {
    async close() {
      closed = true;
      clearTimeout(retry);
      await client?.end();
    },
  };
}
