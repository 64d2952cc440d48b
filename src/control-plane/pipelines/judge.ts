import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import { type Problem, VitrinaError } from "../../domain/error-catalogue.ts";
import { type PipelineConfig, readableConfig } from "../../domain/pipeline.ts";
import type { Finding } from "../validate/findings.ts";
import type { ValidateParts } from "../validate/validator.ts";
import { formProblems, invalidRequest } from "../validation.ts";
import { type AskSource, isUnchecked, withSources } from "./ask-sources.ts";
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
  const ofFields = configurationProblems(config, parts.targets, change).map(({ pointer, message }) => ({
    pointer,
    message,
  }));
  const ofQuery = await judgeQuery(parts, config, change, unreadable, ask);
  // With unreadable tasks nobody can tell whether there must be a query.
  const silent = [...unreadable, ...(unreadable.includes("tasks") ? ["source_query"] : [])].map((field) => `/${field}`);
  const isTold = ({ pointer }: Problem): boolean =>
    !silent.some((place) => pointer === place || pointer.startsWith(`${place}/`));
  return { problems: [...ofFields, ...ofQuery.problems].filter(isTold), warnings: ofQuery.warnings };
}

const OF_THE_QUERY = ["source_query", "tasks", "source_connection"];

/** Only then the source is asked. */
export function touchesQuery(change: object): boolean {
  return OF_THE_QUERY.some((field) => field in change);
}

async function judgeQuery(
  parts: ValidateParts,
  config: PipelineConfig,
  change: object,
  unreadable: readonly string[],
  ask: AskSource,
): Promise<Judgement> {
  if (!touchesQuery(change) || OF_THE_QUERY.some((field) => unreadable.includes(field)))
    return { problems: [], warnings: [] };
  const ofText = await queryProblems(config, parts.targets, parts.guard);
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

/** The pipeline that the path names; where there is none the handler says so. */
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
