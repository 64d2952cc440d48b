import { afterEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { type Chaos, DATA_PATH, openChaos, type Path, printed } from "../support/chaos.ts";
import { createPipeline, createSource, differences, KINDS, type Kind, loadTables } from "../support/chaos-kinds.ts";
import { LONG } from "../support/long.ts";
import { type Rule, startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

/** As the command goes to the server, and as the answer comes back. */
const COMMIT = "COMMIT\0";

/** What the last statement before a COMMIT has in it: the checkpoint, in the meta-store or beside the data. */
const IN_META_STORE = { batch: "UPDATE etl.etl_state", end: "rows_deleted = r.rows_deleted + $5" };
const BESIDE_DATA = {
  batch: '_vitrina_checkpoint" SET batch_no',
  end: '_vitrina_checkpoint" SET scan_position = NULL',
};

/**
 * Before the server has the command nothing is committed; before its answer arrives everything is, and the runner does
 * not know. Only the checkpoint can tell the two apart.
 */
const DIRECTIONS: readonly Rule["direction"][] = ["to server", "to client"];

let chaos: Chaos;
let proxy: TcpProxy;
afterEach(async () => {
  await chaos?.close();
  await proxy?.close();
});

const PATHS: readonly Path[] = LONG ? ["push-down", "stream", "elsewhere"] : ["elsewhere"];

describe("a connection cut at COMMIT", () => {
  it.each<Path>(PATHS)("R4.4 R4.6 loses and doubles nothing, by %s", async (path) => {
    chaos = await openChaos(path);
    proxy = await startTcpProxy(chaos.database.url);
    await createSource(chaos);
    const cuts = await Promise.all(plannedCuts(path).map((cut, n) => prepare(cut, path, `cut${n}`)));
    const { writer, loader } = chaos.target.urls;
    const runner = chaos.runner(undefined, {
      WRITER_DATABASE_URL: proxy.through(writer),
      ...(path === "push-down" && { LOADER_DATABASE_URL: proxy.through(loader as string) }),
      RUNNER_CONCURRENCY: "4",
    });
    await printed(runner, /runner started/);
    await Promise.all(cuts.map(({ pipeline }) => chaos.store.requests.run(pipeline.id, "api")));
    await chaos.atRest();

    expect(cuts.filter(({ rule }) => !rule.acted)).toEqual([]);
    for (const { kind, pipeline } of cuts) await requireWhole(kind, path, pipeline);
    expect(await loadTables(chaos)).toEqual([]);
  });
});

interface Cut {
  readonly kind: Kind;
  readonly direction: Rule["direction"];
  readonly moment: string;
  readonly nth: number;
}

function plannedCuts(path: Path): Cut[] {
  const { batch, end } = path === "elsewhere" ? BESIDE_DATA : IN_META_STORE;
  return KINDS.flatMap((kind) =>
    DIRECTIONS.flatMap((direction) => [
      { kind, direction, moment: batch, nth: 1 },
      { kind, direction, moment: batch, nth: 5 },
      ...(kind.mode === "full" ? [{ kind, direction, moment: end, nth: 1 }] : []),
    ]),
  );
}

async function prepare({ kind, direction, moment, nth }: Cut, path: Path, name: string) {
  const pipeline = await createPipeline(chaos, kind, path, name);
  const rule = proxy.on({ direction, bytes: COMMIT, nth, after: [`"${name}"`, moment] }, "cut");
  return { kind, pipeline, rule };
}

async function requireWhole(kind: Kind, path: Path, { id, target_table }: Pipeline): Promise<void> {
  expect(await chaos.store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
  const [last, first, ...more] = await askedRuns(chaos.store, id);
  expect(more).toEqual([]);
  expect(first).toMatchObject({ status: "FAILED", error_code: "DATABASE_UNAVAILABLE", data_path: DATA_PATH[path] });
  expect(last).toMatchObject({ status: "SUCCESS", attempt: 2 });
  expect(await differences(chaos, target_table)).toBe(0);
  // Counters in another database than the rows follow them; the batch whose answer was lost is not in the history.
  if (path === "elsewhere") return;
  expect((first?.rows_written ?? 0) + (last?.rows_written ?? 0)).toBe(kind.written);
  expect((first?.rows_deleted ?? 0) + (last?.rows_deleted ?? 0)).toBe(kind.deleted);
}
