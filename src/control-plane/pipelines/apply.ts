import { z } from "zod";
import { type Problem, VitrinaError } from "../../domain/error-catalogue.ts";
import {
  appliedPipelineSchema,
  newPipelineSchema,
  type Pipeline,
  type PipelinePatch,
  pipelineSchema,
  readableConfig,
} from "../../domain/pipeline.ts";
import type { ConfigurationChange } from "../../meta-store/ports/pipelines.ts";
import { actorOf } from "../actor.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { problems } from "../problem.ts";
import { type Finding, findingSchema } from "../validate/findings.ts";
import { formProblems, invalidRequest } from "../validation.ts";
import { type AskSource, changesNothing, isObject, judge, requireNone, withSources } from "./judge.ts";

const MOST_PIPELINES = 200;
const MOST_TRIES = 5;

const bodySchema = z.strictObject({ pipelines: z.array(appliedPipelineSchema).min(1).max(MOST_PIPELINES) });

const appliedSchema = z.object({
  done: z.enum(["created", "changed", "unchanged"]),
  pipeline: pipelineSchema,
  warnings: z.array(findingSchema).describe("What could not be checked, and what a run survives."),
});

const applyPipelines = {
  tags: ["pipelines"],
  operationId: "applyPipelines",
  summary: "Create or change several pipelines, all or none",
  description:
    "Each is found by its name: one that exists is changed in the fields that are given, another is created. Every problem is told at once, pointing at its pipeline; with any, nothing is changed.",
  body: bodySchema,
  response: {
    200: answer(
      "What was done with each, in the order of the request.",
      z.object({ pipelines: z.array(appliedSchema) }),
    ),
    ...problems(400, 409, 413, 415, 422),
  },
};

/** A pipeline of the request beside the one that has its name now. */
interface Wanted {
  readonly body: Readonly<Record<string, unknown>>;
  readonly base: Pipeline | undefined;
}

export function applyRoute(api: Api, parts: ApiParts): void {
  // Before the form is checked, so that a mistake in it does not hide the others.
  const preValidation = async ({ body }: { body: unknown }): Promise<void> => {
    const form = formProblems(bodySchema, body);
    if (form.length === 0 || !isObject(body) || !Array.isArray(body["pipelines"])) return;
    const listed = body["pipelines"].slice(0, MOST_PIPELINES).map((one: unknown) => (isObject(one) ? one : {}));
    const { problems } = await judgeAll(parts, await lookUp(parts, listed));
    throw invalidRequest("body", [...form, ...problems]);
  };
  api.post("/apply", { schema: applyPipelines, preValidation }, async (request) => {
    for (let tries = 1; ; tries += 1) {
      const wanted = await lookUp(parts, request.body.pipelines);
      const { problems, warnings } = await judgeAll(parts, wanted);
      requireNone(problems);
      try {
        const applied = await parts.store.pipelines.apply(wanted.map(changeFor), actorOf(request).name);
        return { pipelines: applied.map((pipeline, place) => told(pipeline, wanted[place]?.base, warnings[place])) };
      } catch (error) {
        // Somebody changed it meanwhile: what was judged is no longer the current version.
        const isOvertaken =
          error instanceof VitrinaError && ["PRECONDITION_FAILED", "PIPELINE_NOT_FOUND"].includes(error.code);
        if (!isOvertaken || tries === MOST_TRIES) throw error;
      }
    }
  });
}

async function lookUp(
  { store }: ApiParts,
  bodies: readonly Readonly<Record<string, unknown>>[],
): Promise<readonly Wanted[]> {
  const wanted: Wanted[] = [];
  for (const body of bodies) wanted.push({ body, base: await existing(store, body["name"]) });
  return wanted;
}

async function existing(store: ApiParts["store"], name: unknown): Promise<Pipeline | undefined> {
  if (typeof name !== "string" || !appliedPipelineSchema.shape.name.safeParse(name).success) return undefined;
  try {
    return await store.pipelines.get(name);
  } catch (error) {
    if (error instanceof VitrinaError && error.code === "PIPELINE_NOT_FOUND") return undefined;
    throw error;
  }
}

interface Judgements {
  readonly problems: readonly Problem[];
  readonly warnings: readonly (readonly Finding[])[];
}

function judgeAll(parts: ApiParts, wanted: readonly Wanted[]): Promise<Judgements> {
  const beside = wanted.map(({ body, base }) => readableConfig(body, base).config);
  return withSources(parts, (ask) => judgeEach(parts, wanted, ask), beside);
}

async function judgeEach(parts: ApiParts, wanted: readonly Wanted[], ask: AskSource): Promise<Judgements> {
  const found: Problem[] = [];
  const warnings: (readonly Finding[])[] = [];
  for (const [place, { body, base }] of wanted.entries()) {
    const { id: _, ...fields } = body;
    const judged =
      base !== undefined && changesNothing(base, fields)
        ? { problems: [], warnings: [] }
        : await judge(parts, fields, base, ask);
    const own = [...judged.problems, ...identityProblems(wanted, place)];
    found.push(...own.map((problem) => ({ ...problem, pointer: `/pipelines/${place}${problem.pointer}` })));
    warnings.push(judged.warnings);
  }
  return { problems: found, warnings };
}

function identityProblems(wanted: readonly Wanted[], place: number): Problem[] {
  const { body, base } = wanted[place] as Wanted;
  const found: Problem[] = [];
  const first = wanted.findIndex((other) => typeof body["name"] === "string" && other.body["name"] === body["name"]);
  if (first !== -1 && first < place) {
    found.push({ pointer: "/name", message: `The request names ${String(body["name"])} twice.` });
  }
  if (base === undefined && !("target_table" in body)) {
    found.push({ pointer: "/target_table", message: "A new pipeline needs one." });
  }
  if (base !== undefined && body["id"] !== undefined && String(body["id"]).toLowerCase() !== base.id) {
    found.push({ pointer: "/id", message: `${base.name} has the id ${base.id}, which cannot change.` });
  }
  return found;
}

/** Only what passed its schema comes here. */
function changeFor({ body, base }: Wanted): ConfigurationChange {
  const { id: _, ...patch } = body;
  return base === undefined
    ? { create: newPipelineSchema.parse(body) }
    : { update: base.id, patch: patch as PipelinePatch, expectedVersion: base.config_version };
}

function told(pipeline: Pipeline, base: Pipeline | undefined, warnings: readonly Finding[] = []) {
  const isSame = base?.config_version === pipeline.config_version;
  const done: "created" | "changed" | "unchanged" = base === undefined ? "created" : isSame ? "unchanged" : "changed";
  return { done, pipeline, warnings: [...warnings] };
}
