import type { SearchClient } from "./client.ts";
import { type Cluster, patientCluster } from "./cluster.ts";
import { Patience } from "./patience.ts";

/** Shorter than the meta-store lets a transaction idle: the lease is locked meanwhile. */
const LONGEST_ANSWER_MS = 5000;

/** For requests made while the lease is locked: without a quick answer they fail, and the next attempt tries again. */
export function impatientCluster(client: SearchClient, lost: AbortSignal): Cluster {
  const cluster = patientCluster(client, new Patience(0, lost));
  return { ask: (what, request, accept) => cluster.ask(what, { ...request, timeoutMs: LONGEST_ANSWER_MS }, accept) };
}
