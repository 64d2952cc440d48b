import { z } from "zod";
import { type CodedProblem, VitrinaError } from "../domain/error-catalogue.ts";
import type { PipelineConfig } from "../domain/pipeline.ts";
import { quoted } from "../domain/quoted.ts";
import type { SinkAbilities, Target, TargetReader } from "../domain/target.ts";
import type { SinkDescription } from "./description.ts";

/** A connector, and what the environment says to it. */
export interface ConfiguredSink {
  readonly description: SinkDescription;
  readonly settings: unknown;
}

/** All that is known of targets without talking to one. The API and the runner ask the same. */
export interface Targets extends TargetReader {
  /** Throws TARGET_NOT_ALLOWED where the text names no target. */
  parse(text: string): Target;
  /** The canonical text; `parse` reads it back to the same target. */
  format(target: Target): string;
  isAllowed(target: Target): boolean;
  /** False where the environment names no place for targets of this kind. */
  isConfigured(target: Target): boolean;
  can(target: Target): SinkAbilities;
  /** What targets of some kinds can do, in words: "an index". */
  nounsOf(ability: (can: SinkAbilities) => boolean): string;
  /** What a person should know of the way a text is read. */
  remarksOn(text: string): readonly VitrinaError[];
  /** JSON Schema of `target_options`, for the documentation: what any of the kinds may be told. */
  optionsSchema(): Readonly<Record<string, unknown>>;
  /** `formOf` says in plain words what a schema finds wrong with the form of the options. */
  optionProblems(
    target: Target,
    config: PipelineConfig,
    formOf: (schema: z.ZodType, options: unknown) => readonly CodedProblem[],
  ): readonly CodedProblem[];
}

/** `only`: when there are any, only these of the allowed targets: `analytics.orders`, `es:films`, `analytics.mart_*`. */
export function openTargets(sinks: readonly ConfiguredSink[], only: readonly string[] = []): Targets {
  const ofTarget = ({ kind }: Target): ConfiguredSink => {
    const found = sinks.find(({ description }) => description.kind === kind);
    if (found === undefined) throw new VitrinaError("INTERNAL", `There is no connector for targets of kind ${kind}.`);
    return found;
  };
  const descriptions = sinks.map(({ description }) => description);

  const parse = (text: string): Target => {
    const [description, name] = readPrefix(descriptions, text);
    const target = description?.parse(name);
    if (target !== undefined) return target;
    const forms = descriptions.map(({ prefix, form }) => `${prefix}${form}`);
    throw notAllowed(`${quoted(text.trim())} does not name a target: write ${forms.join(", or ")}.`);
  };
  const format = (target: Target): string => {
    const { description } = ofTarget(target);
    return `${description.prefix}${description.format(target)}`;
  };
  const isOwn = (target: Target): boolean => ofTarget(target).description.allowList.isOwn(target);
  const isAllowed = (target: Target): boolean => {
    const { description, settings } = ofTarget(target);
    if (isOwn(target) || !description.allowList.allows(target, settings)) return false;
    return only.length === 0 || only.some((pattern) => matchesPattern(format(target), pattern));
  };
  const allowed = (): string => {
    if (only.length > 0) return only.join(", ");
    const lists = sinks.flatMap(({ description: { prefix, allowList }, settings }) =>
      allowList.list(settings).map((name) => `${prefix}${name}`),
    );
    return lists.join(", ") || "none";
  };

  return {
    parse,
    format,
    isAllowed,
    require(text) {
      const target = parse(text);
      if (isAllowed(target)) return target;
      const refusal = `${format(target)} is not an allowed target`;
      throw notAllowed(
        isOwn(target)
          ? `${refusal}: Vitrina keeps its own records by such names.`
          : `${refusal}; allowed are: ${allowed()}.`,
      );
    },
    isConfigured(target) {
      const { description, settings } = ofTarget(target);
      return description.isConfigured(settings);
    },
    can: (target) => ofTarget(target).description.can,
    nounsOf: (ability) => nounsOf(descriptions.filter(({ can }) => ability(can))),
    remarksOn(text) {
      const [description, name] = readPrefix(descriptions, text);
      return description?.remarksOn?.(name) ?? [];
    },
    optionsSchema() {
      const schemas = descriptions.flatMap(({ options }) => (options === undefined ? [] : [z.toJSONSchema(options)]));
      const properties = Object.assign({}, ...schemas.map((schema) => schema.properties));
      return { type: "object", properties, additionalProperties: false };
    },
    optionProblems(target, config, formOf) {
      const { noun, options, optionProblems } = ofTarget(target).description;
      const given = config.target_options;
      if (Object.keys(given).length === 0) return [];
      if (options === undefined) return [noOptions(descriptions, noun)];
      const ofForm = formOf(options, given);
      return ofForm.length > 0 ? ofForm : (optionProblems?.(z.parse(options, given), config) ?? []);
    },
  };
}

function noOptions(descriptions: readonly SinkDescription[], noun: string): CodedProblem {
  const having = nounsOf(descriptions.filter(({ options }) => options !== undefined));
  const message = `Only ${having} has options: leave them out for ${noun}.`;
  return { code: "TARGET_NOT_ALLOWED", pointer: "/target_options", message };
}

/** Who reads a text, and what he is given of it. */
function readPrefix(
  descriptions: readonly SinkDescription[],
  text: string,
): readonly [SinkDescription | undefined, string] {
  const trimmed = text.trim();
  const prefixed = descriptions.find(({ prefix }) => prefix !== "" && trimmed.startsWith(prefix));
  const found = prefixed ?? descriptions.find(({ prefix }) => prefix === "");
  return [found, trimmed.slice(prefixed?.prefix.length ?? 0)];
}

/** Whether TARGETS may say this. */
export function isTargetPattern(descriptions: readonly SinkDescription[], text: string): boolean {
  const [description, name] = readPrefix(descriptions, text);
  return description?.allowList.pattern.test(name) ?? false;
}

/** `*` stands for any characters. */
export function matchesPattern(name: string, pattern: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(name);
}

function nounsOf(descriptions: readonly SinkDescription[]): string {
  return descriptions.map(({ noun }) => noun).join(" or ");
}

export function notAllowed(message: string): VitrinaError {
  return new VitrinaError("TARGET_NOT_ALLOWED", message);
}
