import type { SourceInspector } from "../../connectors/inspector.ts";
import type { ErrorCode } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import { type Finding, Findings } from "../validate/findings.ts";
import { checkUnseen } from "../validate/unseen.ts";
import { checkSourceQuery, requireSource } from "../validate/validate.ts";
import type { ValidateParts } from "../validate/validator.ts";

/** What the source makes of the query of a configuration. */
export type AskSource = (config: PipelineConfig) => Promise<readonly Finding[]>;

/** The source, or the way to it, is at fault: the query may well be right. */
const NOT_CHECKED: ReadonlySet<string> = new Set<ErrorCode>([
  "DATABASE_UNAVAILABLE",
  "TOO_MANY_CONNECTIONS",
  "CHECK_TIMED_OUT",
  "SOURCE_CONNECTION_UNKNOWN",
]);

export function isUnchecked({ code }: Finding): boolean {
  return NOT_CHECKED.has(code);
}

/** Whoever could not be asked so often is not asked again: a request of 200 pipelines would wait for each of them. */
const MOST_TROUBLES = 3;

/**
 * Asks the sources on behalf of one request, each by one session. Requests take turns: each of them may keep a source
 * busy, and nobody may use up its connections by saving.
 */
export function withSources<T>(parts: ValidateParts, work: (ask: AskSource) => Promise<T>): Promise<T> {
  const opened = new Map<string, SourceInspector | undefined>();
  const troubles = new Map<string, number>();
  const sourceOf = (name: string): SourceInspector | undefined => {
    if (!opened.has(name)) opened.set(name, parts.inspector.source(name));
    return opened.get(name);
  };
  const ask: AskSource = async (config) => {
    const { source_connection: name } = config;
    const known = troubles.get(name) ?? 0;
    if (known >= MOST_TROUBLES) return [notAsked(name)];
    const found = await askSource(parts, config, sourceOf(name));
    if (found.some(isUnchecked)) troubles.set(name, known + 1);
    return found;
  };
  return parts.asking(async () => {
    try {
      return await work(ask);
    } finally {
      for (const source of opened.values()) await source?.close();
    }
  });
}

async function askSource(
  parts: ValidateParts,
  config: PipelineConfig,
  opened: SourceInspector | undefined,
): Promise<readonly Finding[]> {
  const findings = new Findings();
  const plan = inspectTaskPlan(config, parts.targets);
  const validator = { config, stored: undefined, isTrial: false, parts, plan, findings };
  const source = requireSource(validator, opened);
  if (source === undefined) return findings.all;
  const query = await checkSourceQuery(validator, source);
  if (query !== undefined) await checkUnseen(validator, source, query);
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
