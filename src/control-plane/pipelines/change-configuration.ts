import type { FastifyReply, FastifyRequest } from "fastify";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelinePatch } from "../../domain/pipeline.ts";
import { actorOf } from "../actor.ts";
import type { ApiParts } from "../api.ts";
import { expectedVersion, type SavedPipeline, saved, sendPipeline } from "./answer.ts";
import { changesNothing, concernsSource, judge, requireNone } from "./judge.ts";

const MOST_TRIES = 5;

/** The one way in which a request changes a configuration, whatever its path: the same checks, locks and version. */
export async function changeConfiguration(
  parts: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  pipelineId: string,
  patch: PipelinePatch,
): Promise<SavedPipeline> {
  const { store } = parts;
  const asked = expectedVersion(request);
  const author = actorOf(request).name;
  for (let tries = 1; ; tries += 1) {
    const current = await store.pipelines.get(pipelineId);
    if (!concernsSource(patch, current) || changesNothing(current, patch)) {
      const check = async (merged: Pipeline) => requireNone((await judge(parts, patch, merged)).problems);
      const changed = await store.pipelines.update(current.id, patch, { author, check, expectedVersion: asked });
      sendPipeline(reply, changed);
      return saved(changed, []);
    }
    // Before the transaction, which would keep the pipeline locked while the source answers. The version ties the two.
    const { problems, warnings } = await judge(parts, patch, current);
    const check = () => requireNone(problems);
    const expectedVersion = asked ?? current.config_version;
    try {
      const changed = await store.pipelines.update(current.id, patch, { author, check, expectedVersion });
      sendPipeline(reply, changed);
      return saved(changed, warnings);
    } catch (error) {
      const isOvertaken = error instanceof VitrinaError && error.code === "PRECONDITION_FAILED" && asked === undefined;
      if (!isOvertaken || tries === MOST_TRIES) throw error;
    }
  }
}
