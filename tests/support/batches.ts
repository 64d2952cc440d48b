import { expect } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import { holdLock } from "./hold-lock.ts";
import type { Bench } from "./pipelines.ts";

/** A load of a few rows is quickly over; what should happen in the middle of it is tied to the commit of a batch. */

/** Runs it until a pause that is requested while its third batch commits. */
export async function runToPause(bench: Bench, pipeline: Pipeline): Promise<Run> {
  const forget = await pauseOnBatch(bench, pipeline, 3);
  const paused = await bench.run(pipeline);
  expect(paused.status).toBe("PAUSED");
  await forget();
  return paused;
}

/** Requests a pause while a batch commits (1: the next), until the returned function is called. */
export function pauseOnBatch(bench: Bench, pipeline: Pipeline, nth: number): Promise<() => Promise<unknown>> {
  const pause =
    "UPDATE etl.etl_pipelines SET status = 'PAUSE_REQUESTED' WHERE id = NEW.pipeline_id AND status = 'RUNNING';";
  return onBatch(bench, pipeline, nth, pause);
}

/** Keeps a batch of the next load (1: the first) from being committed until the returned function is called. */
export async function holdBatch(bench: Bench, pipeline: Pipeline, nth: number): Promise<() => Promise<void>> {
  const wait = "WHILE NOT pg_try_advisory_xact_lock_shared(7) LOOP PERFORM pg_sleep(0.01); END LOOP;";
  const letGo = await holdLock(bench.database.url, "SELECT pg_advisory_lock(7)");
  await onBatch(bench, pipeline, nth, wait);
  return letGo;
}

async function onBatch(
  bench: Bench,
  { id }: Pipeline,
  nth: number,
  statement: string,
): Promise<() => Promise<unknown>> {
  const { batchNo } = await bench.store.state.get(id);
  await bench.query(`
    CREATE OR REPLACE FUNCTION public.on_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
      $$ BEGIN ${statement} RETURN NULL; END $$;
    CREATE OR REPLACE TRIGGER on_batch AFTER UPDATE OF batch_no ON etl.etl_state FOR EACH ROW
      WHEN (NEW.pipeline_id = '${id}' AND NEW.batch_no = ${batchNo + nth}) EXECUTE FUNCTION public.on_batch()`);
  return () => bench.query("DROP TRIGGER on_batch ON etl.etl_state");
}
