import type { SearchClient } from "./client.ts";
import { type Cluster, patientCluster } from "./cluster.ts";
import { Patience } from "./patience.ts";

/** Of one node, each of which is asked twice at most: the lease is locked, and the meta-store ends idle transactions. */
const LONGEST_ANSWER_MS = 5000;

/** For requests made while the lease is locked: without a quick answer they fail, and the next attempt tries again. */
export function impatientCluster(client: SearchClient, lost: AbortSignal): Cluster {
  const cluster = patientCluster(client, new Patience(0, lost));
  return { ask: (what, request, accept) => cluster.ask(what, { ...request, timeoutMs: LONGEST_ANSWER_MS }, accept) };
}
