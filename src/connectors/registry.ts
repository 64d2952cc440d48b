import type { SinkDescription, SourceDescription } from "./description.ts";
import { elasticsearchSink } from "./elasticsearch/description.ts";
import { postgresSink, postgresSource } from "./postgres/description.ts";

export interface Registry {
  readonly sources: readonly SourceDescription[];
  readonly sinks: readonly SinkDescription[];
}

/** Every connector there is: a folder, and a line here. */
export const CONNECTORS: Registry = {
  sources: [postgresSource],
  sinks: [postgresSink, elasticsearchSink],
};
