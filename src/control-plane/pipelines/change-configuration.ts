import type { FastifyReply, FastifyRequest } from "fastify";
import type { Pipeline, PipelinePatch } from "../../domain/pipeline.ts";
import { actorOf } from "../actor.ts";
import type { ApiParts } from "../server.ts";
import { checkConfiguration } from "./check-configuration.ts";
import { expectedVersion, sendPipeline } from "./etag.ts";

/** The one way in which a request changes a configuration, whatever its path: the same checks, locks and version. */
export async function changeConfiguration(
  { store, targets, guard }: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  pipelineId: string,
  patch: PipelinePatch,
): Promise<Pipeline> {
  const { id } = await store.getPipeline(pipelineId);
  const check = (merged: Pipeline): Promise<void> => checkConfiguration(merged, { targets, guard }, patch);
  const changed = await store.updatePipeline(id, patch, actorOf(request).name, check, expectedVersion(request));
  return sendPipeline(reply, changed);
}
