import type { z } from "zod";
import type { CodedProblem, DefinedError, VitrinaError } from "../domain/error-catalogue.ts";
import type { ChangesFrom } from "../domain/follow.ts";
import type { PipelineConfig } from "../domain/pipeline.ts";
import type { SinkAbilities, Target } from "../domain/target.ts";
import type { StuckBackend } from "../observability/stuck-backends.ts";
import type { SourceInspector, TargetInspector } from "./inspector.ts";
import type { Sink } from "./sink.ts";
import type { Source } from "./source.ts";

/**
 * What a connector is. The settings, the API, the documentation and the engine read it, so it loads no driver: only
 * `open` and `inspect` load the code that opens connections.
 */
export interface SinkDescription<
  T extends Target = Target,
  Options = unknown,
  Settings = unknown,
  Fields extends z.ZodRawShape = z.ZodRawShape,
> {
  readonly kind: string;
  /** What one target is called: "a table". */
  readonly noun: string;
  /** What the text of a target begins with; empty for one kind. */
  readonly prefix: string;
  /** How a target is written, shown to people. */
  readonly form: string;
  /** Reads what follows the prefix. Throws TARGET_NOT_ALLOWED; `undefined`: it does not even have the right form. */
  parse(text: string): T | undefined;
  /** The canonical text after the prefix, which `parse` reads back to the same target. */
  format(target: T): string;
  /** What a person should know about how a text is read. */
  remarksOn?(text: string): readonly VitrinaError[];
  readonly allowList: AllowList<T, Settings>;
  readonly settings: ConnectorSettings<Settings, Fields>;
  /** What `target_options` may say; `undefined`: nothing. */
  readonly options?: z.ZodType<Options> | undefined;
  /** Options that conflict with each other, or with the rest of the configuration. */
  optionProblems?(options: Options, config: PipelineConfig): readonly CodedProblem[];
  /** Error codes of this connector alone. */
  readonly errors: Readonly<Record<string, DefinedError>>;
  readonly can: SinkAbilities;
  /** False if the settings name no place to write to. */
  isConfigured(settings: Settings): boolean;
  open(settings: Settings, surroundings: SinkSurroundings): Promise<Sink<T, Options>>;
  /** Left out where only a runner talks to targets of this kind. */
  inspect?(settings: Settings, surroundings: InspectionSurroundings): Promise<TargetInspector<T>>;
}

interface AllowList<T extends Target, Settings> {
  allows(target: T, settings: Settings): boolean;
  /** What is allowed, for people; without the prefix. */
  list(settings: Settings): readonly string[];
  /** Names under which the connector keeps records of its own beside the targets. */
  isOwn(target: T): boolean;
  /** What TARGETS may contain after the prefix of this kind. */
  readonly pattern: RegExp;
}

/** The same for a source. Its addresses are the settings SOURCE_<NAME>_URL. */
export interface SourceDescription {
  /** The `source_type` of a pipeline. */
  readonly kind: string;
  /** What an address looks like, for people: "a PostgreSQL URL (postgres://…)". */
  readonly form: string;
  /** Whether the address of a connection is one of this kind. */
  accepts(address: string): boolean;
  /** Judges the text of a query, without asking the source. Throws QUERY_REFUSED. */
  checkQuery(query: string, surroundings: Pick<SourceSurroundings, "allowedSchemas">): Promise<void>;
  /** What a query reads, by its text alone; written as targets of the same database are. */
  namedTables(query: string): Promise<readonly string[]>;
  open(address: string, surroundings: SourceSurroundings & ReadingLimits): Promise<Source>;
  inspect(
    address: string,
    surroundings: SourceSurroundings & Pick<InspectionSurroundings, "timeoutMs">,
  ): Promise<SourceInspector>;
}

export interface SourceSurroundings {
  readonly applicationName: string;
  /** What queries may read, including through views. */
  readonly allowedSchemas: readonly string[];
  /** Left out: by a table. */
  readonly changes?: ChangesFrom | undefined;
  /** Called with a server process of the source that does not end. */
  readonly onStuck?: ((backend: StuckBackend) => void) | undefined;
}

export interface ReadingLimits {
  /** How long the source may stay silent. */
  readonly readTimeoutMs: number;
  /** A batch ends with the row that reaches this, however few rows it has. */
  readonly batchBytes: number;
  /** Ends every session, with whatever is under way. */
  readonly endSignal?: AbortSignal | undefined;
}

/** The part of the environment that a connector reads. */
export interface ConnectorSettings<Settings, Fields extends z.ZodRawShape = z.ZodRawShape> {
  /** Title of the section in .env.sample and docs/SETTINGS.md. */
  readonly section: string;
  /** That section of .env.sample. */
  readonly sample: string;
  readonly fields: Fields;
  /** `folder` is the working folder, which file paths are relative to. */
  read(values: z.output<z.ZodObject<Fields>>, folder: string): Settings;
}

/** The database that Vitrina is set up with; a connector may have addresses of its own instead. */
interface OwnDatabase {
  readonly writerUrl: string;
  /** The login that can also read the sources of the same database. */
  readonly loaderUrl: string | undefined;
}

/** What every sink is given beside its settings. */
export interface SinkSurroundings extends OwnDatabase {
  readonly applicationName: string;
  /** Both shorter than the lease: a frozen runner must not wait for a lock, or hold one, longer than its lease. */
  readonly lockTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** A statement may take longer than the lease: the heartbeat keeps it, and the fence comes last. */
  readonly statementTimeoutMs: number;
}

/** What every inspector is given. */
export interface InspectionSurroundings extends OwnDatabase {
  readonly applicationName: string;
  /** For each question. */
  readonly timeoutMs: number;
}

/** Checks a description against the types of its own target, options and settings, which nobody else knows. */
export function defineSink<T extends Target, Options, Settings, Fields extends z.ZodRawShape>(
  description: SinkDescription<T, Options, Settings, Fields>,
): SinkDescription {
  return description;
}
