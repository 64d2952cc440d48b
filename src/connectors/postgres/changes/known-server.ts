import type { Client } from "../../../postgres/connection.ts";
import { askServer } from "../source-mark.ts";
import { readDatabase } from "./change-table.ts";
import { type Fingerprint, serverPrints } from "./fingerprint.ts";
import { readServerHistory } from "./server-history.ts";

/** The prints of a session's server. One that was replaced or restored ends its sessions: so each is asked once. */
export function knownServer(): (client: Client) => Promise<Fingerprint> {
  let known: { readonly of: Client; readonly prints: Fingerprint } | undefined;
  return async (client) => {
    if (known?.of !== client) known = { of: client, prints: await readServer(client) };
    return known.prints;
  };
}

async function readServer(client: Client): Promise<Fingerprint> {
  const { system = null, timeline = null } = await askServer(client);
  const start = (await readServerHistory(client))?.start;
  return serverPrints({ system, timeline, database: await readDatabase(client), start });
}
