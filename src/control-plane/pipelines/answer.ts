import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Pipeline, pipelineSchema } from "../../domain/pipeline.ts";
import type { Log } from "../../observability/log.ts";
import { actorOf } from "../actor.ts";
import { type Finding, findingSchema } from "../validate/findings.ts";

/**
 * An ETag is `"v<config_version>-<hash of the whole answer>"`. The whole of it decides whether a reader already has
 * the answer, for the status changes without a new version. Only the version decides whether a change may go ahead:
 * somebody who edits a configuration does not mind that a run began meanwhile.
 */
const ETAG = /^"v(\d{1,9})(?:-[0-9a-f]+)?"$/;

/** Answers with a pipeline, and its ETag. */
export function sendPipeline(reply: FastifyReply, pipeline: Pipeline): Pipeline {
  reply.header("etag", etagOf(pipeline));
  return pipeline;
}

/** True when a reader says by If-None-Match that it has the pipeline as it is. */
export function readerHas({ headers }: FastifyRequest, pipeline: Pipeline): boolean {
  const known = tagsOf(headers["if-none-match"]).map((tag) => tag.replace(/^W\//, ""));
  return known.includes(etagOf(pipeline)) || known.includes("*");
}

/** The version that If-Match names; `undefined` if any will do. */
export function expectedVersion(request: FastifyRequest): number | undefined {
  const tags = tagsOf(request.headers["if-match"]);
  if (tags.length === 0 || tags.includes("*")) return undefined;
  const version = tags.length === 1 ? ETAG.exec(tags[0] ?? "")?.[1] : undefined;
  if (version !== undefined) return Number(version);
  throw new VitrinaError("PRECONDITION_FAILED", "If-Match does not name one version of this pipeline.", {
    hint: 'Send the ETag of the pipeline as it was answered, such as "v3", or leave If-Match out.',
  });
}

function etagOf(pipeline: Pipeline): string {
  const hash = createHash("sha256").update(JSON.stringify(pipeline)).digest("hex").slice(0, 16);
  return `"v${pipeline.config_version}-${hash}"`;
}

function tagsOf(header: string | undefined): string[] {
  return (header ?? "").split(",").flatMap((tag) => (tag.trim() === "" ? [] : [tag.trim()]));
}

/** What saving answers: the pipeline, and what there is to say about it. */
export const savedPipelineSchema = pipelineSchema.extend({
  warnings: z
    .array(findingSchema)
    .optional()
    .describe("What could not be checked, and what a run survives; left out when there is nothing."),
});
export type SavedPipeline = Pipeline & { readonly warnings?: Finding[] };

export function saved(pipeline: Pipeline, warnings: readonly Finding[]): SavedPipeline {
  return warnings.length === 0 ? pipeline : { ...pipeline, warnings: [...warnings] };
}

/** A request that is repeated changes nothing the second time, and is not news. */
export function logStatusChange(
  log: Log,
  request: FastifyRequest,
  before: Pipeline,
  { id, name, status }: Pipeline,
  message: string,
): void {
  if (status === before.status) return;
  const who = { actor: actorOf(request).name, request_id: request.id };
  log.info({ pipeline: name, pipeline_id: id, status_before: before.status, status, ...who }, message);
}
