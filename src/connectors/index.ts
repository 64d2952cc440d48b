import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Target } from "../domain/target.ts";
import type { SinkDescription, SinkSurroundings } from "./description.ts";
import type { PostgresSourceConfig } from "./postgres/read-session.ts";
import { openPostgresSource } from "./postgres/source.ts";
import type { Sink } from "./sink.ts";
import type { Source } from "./source.ts";
import type { ConfiguredSink } from "./targets.ts";

/** What the connectors need to know; addresses come from the environment of the process. */
interface ConnectorsConfig {
  readonly sources: ReadonlyMap<string, PostgresSourceConfig>;
  readonly sinks: readonly ConfiguredSink[];
  readonly surroundings: SinkSurroundings;
}

export interface Connectors {
  /** The signal ends its connections, with whatever is under way. */
  source(connection: string, endSignal?: AbortSignal): Source | undefined;
  sink(target: Target): Promise<Sink>;
}

export function openConnectors(config: ConnectorsConfig): Connectors {
  const opened = new Map<string, Promise<Sink>>();
  return {
    source: (connection, endSignal) => {
      const found = config.sources.get(connection);
      return found === undefined ? undefined : openPostgresSource({ ...found, endSignal });
    },
    async sink({ kind }) {
      const known = opened.get(kind);
      if (known !== undefined) return known;
      const found = config.sinks.find(({ description }) => description.kind === kind);
      if (found === undefined) throw new VitrinaError("INTERNAL", `There is no connector for targets of kind ${kind}.`);
      const { description, settings } = found;
      const sink = description.open(settings, config.surroundings).then((one) => withOptions(one, description));
      opened.set(kind, sink);
      return sink;
    },
  };
}

/** A connector is given the options that it describes. */
function withOptions(sink: Sink, { options: schema }: SinkDescription): Sink {
  const read = <R extends { readonly options: unknown }>(request: R): R => {
    if (schema === undefined) return { ...request, options: {} };
    const { data: options, error } = schema.safeParse(request.options);
    if (error === undefined) return { ...request, options };
    throw new VitrinaError("TARGET_NOT_ALLOWED", `The target_options are not valid: ${z.prettifyError(error)}.`);
  };
  const { restorePrevious } = sink;
  return {
    open: async (request) => sink.open(read(request)),
    openComparison: async (request) => sink.openComparison(read(request)),
    clearAway: async (request) => sink.clearAway(read(request)),
    ...(restorePrevious && { restorePrevious }),
  };
}
