import type { SearchClient } from "./client.ts";
import { type Cluster, patientCluster } from "./cluster.ts";
import { Patience } from "./patience.ts";

/** Shorter than the meta-store lets a transaction wait: the lease is locked meanwhile. */
const LONGEST_ANSWER_MS = 5000;

/** For what is asked while the lease is locked: who is not answered soon gives up, and tries again with a new attempt. */
export function hurriedCluster(client: SearchClient, lost: AbortSignal): Cluster {
  const cluster = patientCluster(client, new Patience(0, lost));
  return { ask: (what, request, accept) => cluster.ask(what, { ...request, timeoutMs: LONGEST_ANSWER_MS }, accept) };
}
