import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { ChangesFrom } from "../domain/follow.ts";
import { quoted } from "../domain/quoted.ts";
import type { Target } from "../domain/target.ts";
import type {
  InspectionSurroundings,
  ReadingLimits,
  SinkDescription,
  SinkSurroundings,
  SourceDescription,
  SourceSurroundings,
} from "./description.ts";
import type { Inspector, TargetInspector } from "./inspector.ts";
import type { Sink } from "./sink.ts";
import type { Source, SourceRef } from "./source.ts";
import type { ConfiguredSink } from "./targets.ts";

/** Where rows come from and where they go, for a runner. */
export interface Connectors {
  /** Throws if there is no such source. The signal ends its connections and whatever is under way on them. */
  source(of: SourceRef, endSignal?: AbortSignal): Promise<Source>;
  sink(target: Target): Promise<Sink>;
  close(): Promise<void>;
}

/** The kinds of sources, and the addresses by the names of their connections. */
interface ConfiguredSources {
  readonly descriptions: readonly SourceDescription[];
  readonly addresses: ReadonlyMap<string, string>;
  /** How each tells of its changes, where it is not by a table. */
  readonly changes: ReadonlyMap<string, ChangesFrom>;
}

interface ConnectorsConfig {
  readonly sources: ConfiguredSources;
  readonly reading: SourceSurroundings & Omit<ReadingLimits, "endSignal">;
  readonly sinks: readonly ConfiguredSink[];
  readonly writing: SinkSurroundings;
}

export function openConnectors({ sources, reading, sinks, writing }: ConnectorsConfig): Connectors {
  const opened: Promise<Sink>[] = [];
  const sinkOf = onceForEachKind(sinks, ({ description, settings }) => {
    const sink = description.open(settings, writing);
    opened.push(sink);
    return sink.then((one) => withOptions(one, description));
  });
  return {
    async source(of, endSignal) {
      const { description, address, changes } = findSource(sources, of);
      return description.open(address, { ...reading, changes, endSignal });
    },
    sink: async (target) => sinkOf(target),
    async close() {
      await Promise.allSettled(opened.map(async (sink) => (await sink).close?.()));
    },
  };
}

interface InspectorConfig {
  readonly sources: ConfiguredSources;
  readonly reading: SourceSurroundings;
  readonly sinks: readonly ConfiguredSink[];
  readonly looking: InspectionSurroundings;
  /** Connections to databases that a runner may prepare by itself. */
  readonly ownConnections?: readonly string[];
}

export function openInspector({ sources, reading, sinks, looking, ownConnections = [] }: InspectorConfig): Inspector {
  const inspectorOf = onceForEachKind(
    sinks,
    async ({ description, settings }): Promise<TargetInspector | undefined> => description.inspect?.(settings, looking),
  );
  return {
    sourceTypes: sources.descriptions.map(({ kind }) => kind),
    recordsItself: (of) => ownConnections.includes(of.source_connection),
    checkQuery: async (of, query) => descriptionOf(sources, of).checkQuery(query, reading),
    namedTables: async (of, query) => descriptionOf(sources, of).namedTables(query),
    async source(of) {
      const { description, address, changes } = findSource(sources, of);
      return description.inspect(address, { ...reading, changes, timeoutMs: looking.timeoutMs });
    },
    target: async (target) => inspectorOf(target),
  };
}

function descriptionOf({ descriptions }: ConfiguredSources, { source_type: type }: SourceRef): SourceDescription {
  const found = descriptions.find(({ kind }) => kind === type);
  if (found !== undefined) return found;
  const known = descriptions.map(({ kind }) => kind).join(", ");
  throw new VitrinaError("NOT_SUPPORTED", `There is no source of type ${quoted(type)}; there are: ${known}.`);
}

interface FoundSource {
  readonly description: SourceDescription;
  readonly address: string;
  readonly changes: ChangesFrom | undefined;
}

function findSource(sources: ConfiguredSources, of: SourceRef): FoundSource {
  const description = descriptionOf(sources, of);
  const address = sources.addresses.get(of.source_connection);
  if (address !== undefined && description.accepts(address)) {
    return { description, address, changes: sources.changes.get(of.source_connection) };
  }
  const connection = `"${of.source_connection}"`;
  const message =
    address === undefined
      ? `There is no source connection ${connection}.`
      : `The source connection ${connection} is not of type ${of.source_type}.`;
  throw new VitrinaError("SOURCE_CONNECTION_UNKNOWN", message);
}

function onceForEachKind<T>(
  sinks: readonly ConfiguredSink[],
  open: (sink: ConfiguredSink) => Promise<T>,
): (target: Target) => Promise<T> {
  const opened = new Map<string, Promise<T>>();
  return ({ kind }) => {
    const known = opened.get(kind);
    if (known !== undefined) return known;
    const found = sinks.find(({ description }) => description.kind === kind);
    if (found === undefined) throw new VitrinaError("INTERNAL", `There is no connector for targets of kind ${kind}.`);
    const opening = open(found);
    opened.set(kind, opening);
    return opening;
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
