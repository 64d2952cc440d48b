import type { FastifyRequest } from "fastify";
import type { Pipeline } from "../../domain/pipeline.ts";
import type { Log } from "../../observability/log.ts";
import { actorOf } from "../actor.ts";

/** A request that was made twice changes nothing the second time, and is no news. */
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
