export const SEARCH_SERVERS: Readonly<Record<SearchServerName, object>>;

export type SearchServerName = "opensearch3" | "elasticsearch9" | "elasticsearch8" | "opensearch2";

export interface Distribution {
  readonly family: "elasticsearch" | "opensearch";
  /** The unpacked folder; shared, so nothing is written into it. */
  readonly folder: string;
  readonly javaHome: string;
}

export function fetchDistribution(name: SearchServerName): Promise<Distribution>;
