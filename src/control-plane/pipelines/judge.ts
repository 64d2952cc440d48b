import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Inspector, SourceInspector } from "../../connectors/inspector.ts";
import {
  type CatalogueEntry,
  ERROR_CATALOGUE,
  type ErrorCode,
  type Problem,
  VitrinaError,
} from "../../domain/error-catalogue.ts";
import { type PipelineConfig, readableConfig } from "../../domain/pipeline.ts";
import { mayPass } from "../../domain/retry-policy.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import { checkCycle } from "../validate/cycle.ts";
import { type Finding, Findings } from "../validate/findings.ts";
import { checkFollow } from "../validate/follow.ts";
import { checkSourceQuery, checkUnseen, openSource } from "../validate/validate.ts";
import type { ValidateParts } from "../validate/validator.ts";
import { formProblems, invalidRequest } from "../validation.ts";
import { configurationProblems, queryProblems } from "./check-configuration.ts";

/** What saving says about a configuration. With problems nothing is saved; warnings come with the answer. */
export interface Judgement {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Finding[];
}

/**
 * Judges as validate does, as far as it is about the configuration itself: the rules of its fields, and what the source
 * makes of the query. A source that is away does not keep anybody from saving; that the query was not checked is said.
 * A change is held only against the rules it touches. `base`: the pipeline as it stands; undefined where it is new.
 * `ask`: by whom several pipelines are judged, so that they share what they ask with.
 */
export async function judge(
  parts: ValidateParts,
  body: Readonly<Record<string, unknown>>,
  base: PipelineConfig | undefined,
  ask: AskSource = (config) => withSources(parts, (askOne) => askOne(config)),
): Promise<Judgement> {
  const { config, unreadable } = readableConfig(body, base);
  const change = base === undefined ? config : body;
  const ofFields = configurationProblems(config, parts, change).map(({ pointer, message }) => ({
    pointer,
    message,
  }));
  const ofQuery = await judgeQuery(parts, config, change, unreadable, ask);
  // With unreadable tasks it is unknown whether there must be a query.
  const silent = [...unreadable, ...(unreadable.includes("tasks") ? ["source_query"] : [])].map((field) => `/${field}`);
  const isTold = ({ pointer }: Problem): boolean =>
    !silent.some((place) => pointer === place || pointer.startsWith(`${place}/`));
  return { problems: [...ofFields, ...ofQuery.problems].filter(isTold), warnings: ofQuery.warnings };
}

const OF_THE_QUERY = ["source_query", "tasks", "source_type", "source_connection"];

/** What decides whether a query can be followed, and how. */
const OF_FOLLOWING = ["mode", "follow", "target_key", "target_table"];

/** Only then the source is asked. `base`: what is changed; undefined where it is new. */
export function concernsSource(change: object, base: Pick<PipelineConfig, "mode"> | undefined): boolean {
  if (OF_THE_QUERY.some((field) => field in change)) return true;
  const { mode } = { ...base, ...change };
  return mode === "follow" && OF_FOLLOWING.some((field) => field in change);
}

async function judgeQuery(
  parts: ValidateParts,
  config: PipelineConfig,
  change: object,
  unreadable: readonly string[],
  ask: AskSource,
): Promise<Judgement> {
  const needed = config.mode === "follow" ? [...OF_THE_QUERY, ...OF_FOLLOWING] : OF_THE_QUERY;
  if (!concernsSource(change, config) || needed.some((field) => unreadable.includes(field)))
    return { problems: [], warnings: [] };
  const ofText = await queryProblems(config, parts);
  if (ofText.length > 0) return { problems: ofText, warnings: [] };
  const found = await ask(config);
  return {
    problems: found
      .filter((finding) => finding.severity === "error" && !isUnchecked(finding))
      .map(({ pointer, message, line, column }) => ({
        pointer,
        message,
        ...(line !== undefined && { line }),
        ...(column !== undefined && { column }),
      })),
    warnings: found
      .filter((finding) => finding.severity === "warning" || isUnchecked(finding))
      .map((finding) => (isUnchecked(finding) ? asNotChecked(finding) : finding)),
  };
}

function asNotChecked(finding: Finding): Finding {
  return { ...finding, severity: "warning", message: `The query was not checked. ${finding.message}` };
}

export function requireNone(problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalidRequest("body", problems);
}

/** Whether a change leaves everything as it is. */
export function changesNothing(base: PipelineConfig, change: object): boolean {
  return Object.entries(change).every(
    ([field, value]) => JSON.stringify(value) === JSON.stringify(base[field as keyof PipelineConfig]),
  );
}

/**
 * Runs before the form of the body is checked: a mistake in it must not hide what is wrong with the target or the
 * query, so both are told at once. What has the right form goes on to its handler.
 */
export function tellAllProblems(
  parts: ValidateParts,
  schema: z.ZodType,
  baseOf: (request: FastifyRequest) => Promise<PipelineConfig | undefined>,
) {
  return async (request: FastifyRequest): Promise<void> => {
    const { body } = request;
    if (!isObject(body)) return;
    const form = formProblems(schema, body);
    if (form.length === 0) return;
    const { problems } = await judge(parts, body, await baseOf(request));
    throw invalidRequest("body", [...form, ...problems]);
  };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The pipeline that the path names; if there is none, the handler says so. */
export function storedPipeline({ store }: ValidateParts) {
  return async ({ params }: FastifyRequest): Promise<PipelineConfig | undefined> => {
    try {
      return await store.pipelines.get((params as { id: string }).id);
    } catch (error) {
      if (error instanceof VitrinaError && error.code === "PIPELINE_NOT_FOUND") return undefined;
      throw error;
    }
  };
}

/** What the source makes of the query of a configuration. */
export type AskSource = (config: PipelineConfig) => Promise<readonly Finding[]>;

/** The source, or the way to it, is at fault: the query may well be right. */
function isUnchecked({ code }: Finding): boolean {
  const known = ERROR_CATALOGUE[code as ErrorCode] as CatalogueEntry | undefined;
  if (known !== undefined && mayPass(known.retry)) return true;
  return code === "CHECK_TIMED_OUT" || code === "SOURCE_CONNECTION_UNKNOWN";
}

/** A source that failed to answer this often is not asked again: a request of 200 pipelines would wait for each. */
const MOST_TROUBLES = 3;

/**
 * Asks the sources on behalf of one request, each by one session. Requests take turns: each of them may keep a source
 * busy, and nobody may use up its connections by saving. `beside`: all that the request saves, where it is several.
 */
export function withSources<T>(
  parts: ValidateParts,
  work: (ask: AskSource) => Promise<T>,
  beside: readonly PipelineConfig[] = [],
): Promise<T> {
  const opened = new Map<string, Promise<SourceInspector>>();
  const troubles = new Map<string, number>();
  const open: Inspector["source"] = (of) => {
    const name = `${of.source_type} ${of.source_connection}`;
    const source = opened.get(name) ?? parts.inspector.source(of);
    opened.set(name, source);
    return source;
  };
  const ask: AskSource = async (config) => {
    const { source_connection: name } = config;
    const known = troubles.get(name) ?? 0;
    if (known >= MOST_TROUBLES) return [notAsked(name)];
    const found = await askSource(parts, config, beside, open);
    if (found.some(isUnchecked)) troubles.set(name, known + 1);
    return found;
  };
  return parts.asking(async () => {
    try {
      return await work(ask);
    } finally {
      for (const source of opened.values()) await source.then((one) => one.close()).catch(() => undefined);
    }
  });
}

async function askSource(
  parts: ValidateParts,
  config: PipelineConfig,
  beside: readonly PipelineConfig[],
  open: Inspector["source"],
): Promise<readonly Finding[]> {
  const findings = new Findings();
  const plan = inspectTaskPlan(config, parts.targets);
  const validator = { config, stored: undefined, isTrial: false, beside, parts, plan, findings };
  const source = await openSource(validator, open);
  if (source === undefined) return findings.all;
  const query = await checkSourceQuery(validator, source);
  if (query === undefined) return findings.all;
  await checkUnseen(validator, source, query);
  await checkCycle(validator, source);
  await checkFollow(validator, source, query, config.target_key, "saving");
  return findings.all;
}

function notAsked(connection: string): Finding {
  return {
    code: "DATABASE_UNAVAILABLE" satisfies ErrorCode,
    severity: "warning",
    pointer: "/source_query",
    message: `The source "${connection}" did not answer for the pipelines before it.`,
    hint: "Validate it when the source can be reached.",
  };
}
