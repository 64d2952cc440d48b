export const SEARCH_SERVERS: Readonly<Record<SearchServerName, object>>;

export type SearchServerName = "opensearch3" | "elasticsearch9" | "elasticsearch8" | "opensearch2";

/** A server of the caller's own: one node, on loopback, in a temporary folder. */
export interface SearchServer {
  readonly url: string;
  /** As a power failure would. */
  kill(): Promise<void>;
  /** After `kill`, with the same data and on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export function startSearchServer(name: SearchServerName): Promise<SearchServer>;
