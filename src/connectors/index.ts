import type { Target } from "../domain/target.ts";
import { type ElasticsearchSinkConfig, openElasticsearchSink } from "./elasticsearch/sink.ts";
import type { PostgresSourceConfig } from "./postgres/read-session.ts";
import { openPostgresSink, type PostgresSinkConfig } from "./postgres/sink.ts";
import { openPostgresSource } from "./postgres/source.ts";
import type { Sink } from "./sink.ts";
import type { Source } from "./source.ts";

/** What the connectors need to know; addresses come from the environment of the process. */
interface ConnectorsConfig {
  readonly sources: ReadonlyMap<string, PostgresSourceConfig>;
  readonly postgres: PostgresSinkConfig;
  readonly elasticsearch: ElasticsearchSinkConfig;
}

/** Every connector there is. A further sink is one folder and one line here. */
export interface Connectors {
  /** The signal ends its connections, with whatever is under way. */
  source(connection: string, endSignal?: AbortSignal): Source | undefined;
  sink(kind: Target["kind"]): Sink;
}

export function openConnectors(config: ConnectorsConfig): Connectors {
  const sinks: Readonly<Record<Target["kind"], Sink>> = {
    postgres: openPostgresSink(config.postgres),
    elasticsearch: openElasticsearchSink(config.elasticsearch),
  };
  return {
    source: (connection, endSignal) => {
      const found = config.sources.get(connection);
      return found === undefined ? undefined : openPostgresSource({ ...found, endSignal });
    },
    sink: (kind) => sinks[kind],
  };
}
