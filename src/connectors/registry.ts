import type { SinkDescription } from "./description.ts";
import { elasticsearchSink } from "./elasticsearch/description.ts";
import { postgresSink } from "./postgres/description.ts";

export interface Registry {
  readonly sinks: readonly SinkDescription[];
}

/** Every connector there is: a folder, and a line here. */
export const CONNECTORS: Registry = {
  sinks: [postgresSink, elasticsearchSink],
};
