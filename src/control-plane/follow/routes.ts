import type { SourceInspector, SourceRef, WaitingAtSource } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { FollowPosition } from "../../domain/follow.ts";
import type { Pipeline, PipelineConfig } from "../../domain/pipeline.ts";
import type { FollowState } from "../../meta-store/ports/follow.ts";
import type { Api, ApiParts } from "../api.ts";
import { type FollowStatusAnswer, operations } from "./operations.ts";
import { describePlan, planFor } from "./plan.ts";
import { followScript } from "./script.ts";

export function followRoutes(api: Api, parts: ApiParts): void {
  const { store, asking } = parts;

  api.get("/pipelines/:id/follow/plan", { schema: operations.getFollowPlan }, async ({ params }) => {
    const pipeline = await store.pipelines.get(params.id);
    return asking(() =>
      withSource(parts, pipeline, async (source) =>
        describePlan(source, pipeline, await planFor(parts, source, pipeline)),
      ),
    );
  });

  api.get("/pipelines/:id/follow", { schema: operations.getFollowStatus }, async ({ params }) => {
    const pipeline = await store.pipelines.get(params.id);
    requireFollowing(pipeline);
    return asking(() => statusOf(parts, pipeline));
  });

  api.get("/sources/:connection/follow/script", { schema: operations.getFollowScript }, async (request, reply) => {
    const { params, query } = request;
    const purpose = query.remove ? "remove" : query.diff ? "diff" : "install";
    const script = await asking(() => followScript(parts, params.connection, purpose));
    return reply
      .type("text/plain; charset=utf-8")
      .serializer(String)
      .send(script as never);
  });
}

async function withSource<T>(
  { inspector }: ApiParts,
  of: SourceRef,
  work: (source: SourceInspector) => Promise<T>,
): Promise<T> {
  const source = await inspector.source(of);
  try {
    return await work(source);
  } finally {
    await source.close();
  }
}

function requireFollowing({ name, mode }: PipelineConfig): void {
  if (mode === "follow") return;
  throw new VitrinaError("NOT_SUPPORTED", `${name} does not follow its source: its mode is ${mode}.`, {
    hint: "Set mode to follow; GET …/follow/plan shows what that needs.",
  });
}

async function statusOf(parts: ApiParts, pipeline: Pipeline): Promise<FollowStatusAnswer> {
  const state = await parts.store.follow.get(pipeline.id);
  const { position, sweepNext } = state;
  const { sweep_parts } = pipeline.follow;
  const waiting = position === null ? undefined : await askWaiting(parts, pipeline, position, state.tables);
  return {
    pipeline: pipeline.name,
    connection: pipeline.source_connection,
    status: pipeline.status,
    enabled: pipeline.enabled,
    following: position !== null,
    position: position?.snapshot ?? null,
    changes_waiting: waiting?.changes ?? null,
    lag_seconds: waiting?.changes == null ? null : (waiting.oldestSeconds ?? 0),
    last_round_at: state.lastRoundAt,
    last_compare_at: state.lastCompareAt,
    compare_reason: state.compareReason,
    comparing: state.comparePosition !== null,
    last_sweep_at: state.lastSweepAt,
    next_sweep_at: state.nextSweepAt,
    sweep_parts,
    swept_parts: sweepNext === null ? 0 : Math.max(0, sweep_parts - sweepNext.parts),
    repaired: state.repaired,
    last_repaired: state.lastRepaired,
    tables: [...state.tables],
    slot: waiting?.slot === undefined ? null : { name: waiting.slot.name, kept_bytes: waiting.slot.keptBytes },
    note: waiting?.note ?? restOf(pipeline, state),
  };
}

/** Why nothing begins although changes wait. */
function restOf({ name, status }: Pipeline, { restingUntil }: FollowState): string | null {
  if (restingUntil === null || status !== "IDLE") return null;
  const time = `${restingUntil.toISOString().slice(11, 19)} UTC`;
  return `Everything was compared several times, one after the other, so no change starts a run before ${time}. vitrina run ${name} starts one now.`;
}

interface WaitingForMart {
  readonly changes: number | null;
  readonly oldestSeconds: number | null;
  readonly slot: WaitingAtSource["slot"];
  /** Why the changes are not known. */
  readonly note: string | null;
}

/** A source that is away does not keep anybody from seeing what the meta-store knows. */
async function askWaiting(
  parts: ApiParts,
  pipeline: Pipeline,
  position: FollowPosition,
  tables: readonly string[],
): Promise<WaitingForMart> {
  try {
    const { id: pipelineId } = pipeline;
    const { byPipeline, slot, uncounted } = await withSource(parts, pipeline, (source) =>
      source.changesWaiting([{ pipelineId, position, tables }]),
    );
    const found = byPipeline.get(pipelineId);
    if (found !== undefined) return { ...found, slot, note: null };
    return unknown(uncounted === undefined ? "The source does not record its changes." : couldNotAsk(uncounted), slot);
  } catch (error) {
    if (!(error instanceof VitrinaError) || error.code === "INTERNAL") throw error;
    return unknown(couldNotAsk(error));
  }
}

const couldNotAsk = ({ code }: VitrinaError): string => `The source could not be asked what waits (${code}).`;

function unknown(note: string, slot?: WaitingAtSource["slot"]): WaitingForMart {
  return { changes: null, oldestSeconds: null, slot, note };
}
