import { Gauge, type Registry } from "prom-client";
import type { WaitingAtSource, WaitingChanges } from "../../connectors/inspector.ts";
import type { FollowingPipeline } from "../../meta-store/ports/follow.ts";
import type { ApiParts } from "../api.ts";

const MOST_FOLLOWING = 500;
/** Sources are asked at most this often, however many scrapes there are. */
const BETWEEN_QUESTIONS_MS = 5000;
/** What is older says nothing about now. */
const LONGEST_KNOWN_MS = 120_000;

export interface FollowGauges {
  /** Called before each scrape. Never waits for a source: it shows the last answers, and asks again in the background. */
  refresh(): void;
  close(): Promise<void>;
}

type LagParts = Pick<ApiParts, "store" | "inspector" | "log" | "registry">;

/** How far behind marts that follow are: only their sources know. */
export function createFollowGauges(parts: LagParts): FollowGauges {
  const gauges = createGauges(parts.registry);
  let known: { readonly at: number; readonly answers: readonly Answered[] } = { at: 0, answers: [] };
  let asking: Promise<void> | undefined;
  let askedAt = 0;
  const ask = async (): Promise<void> => {
    try {
      const answers = await askSources(parts);
      known = { at: Date.now(), answers };
    } catch (error) {
      parts.log.warn({ err: error }, "it could not be found out how far the marts are behind");
    } finally {
      asking = undefined;
    }
  };
  return {
    refresh() {
      const now = Date.now();
      if (asking === undefined && now - askedAt >= BETWEEN_QUESTIONS_MS) {
        askedAt = now;
        asking = ask();
      }
      for (const gauge of Object.values(gauges)) gauge.reset();
      if (now - known.at > LONGEST_KNOWN_MS) return;
      for (const { connection, isSilent, slot, marts } of known.answers) {
        gauges.answers.set({ connection }, isSilent ? 0 : 1);
        if (slot !== undefined) gauges.kept.set({ connection, slot: slot.name }, slot.keptBytes);
        for (const { pipeline, changes, oldestSeconds } of marts) {
          gauges.waiting.set({ pipeline }, changes);
          gauges.lag.set({ pipeline }, oldestSeconds === null ? 0 : oldestSeconds + (now - known.at) / 1000);
        }
      }
    },
    async close() {
      await asking;
    },
  };
}

function createGauges(registry: Registry) {
  const gauge = (name: string, help: string, labelNames = ["pipeline"]) =>
    new Gauge({ name: `vitrina_follow_${name}`, help, labelNames, registers: [registry] });
  return {
    waiting: gauge(
      "changes_waiting",
      "Changes that the source has recorded and that are not in the mart yet; none while the source does not answer.",
    ),
    lag: gauge("lag_seconds", "The age of the oldest change that is not in the mart yet; 0 when none waits."),
    answers: gauge(
      "source_answers",
      "1 while a source that marts follow tells of its changes, and 0 while it does not: then they stand still.",
      ["connection"],
    ),
    kept: gauge(
      "slot_kept_bytes",
      "WAL that the server of a source keeps for the replication slot that marts follow; none where triggers record changes.",
      ["connection", "slot"],
    ),
  };
}

interface Answered {
  readonly connection: string;
  readonly isSilent: boolean;
  readonly slot: WaitingAtSource["slot"];
  readonly marts: readonly (WaitingChanges & { readonly pipeline: string })[];
}

/** Of a source that does not answer nothing else is known. No run says so: none begins, because nobody knows of a change. */
async function askSources({ store, inspector, log }: LagParts): Promise<readonly Answered[]> {
  const bySource = new Map<string, FollowingPipeline[]>();
  for (const one of (await store.follow.watched()).slice(0, MOST_FOLLOWING)) {
    const name = `${one.source_type} ${one.source_connection}`;
    bySource.set(name, [...(bySource.get(name) ?? []), one]);
  }
  const answers = [...bySource.values()].map(async (pipelines): Promise<readonly Answered[]> => {
    const [of] = pipelines;
    if (of === undefined) return [];
    const { source_connection: connection } = of;
    try {
      const source = await inspector.source(of);
      try {
        const { byPipeline, slot, uncounted } = await source.changesWaiting(
          pipelines.map(({ id, ...rest }) => ({ pipelineId: id, ...rest })),
        );
        if (uncounted !== undefined) log.debug({ err: uncounted, connection }, "the source did not say what waits");
        const marts = pipelines.flatMap(({ id, name: pipeline }) => {
          const waiting = byPipeline.get(id);
          return waiting === undefined ? [] : [{ ...waiting, pipeline }];
        });
        return [{ connection, isSilent: false, slot, marts }];
      } finally {
        await source.close();
      }
    } catch (error) {
      log.debug({ err: error, connection }, "the source did not say what waits");
      return [{ connection, isSilent: true, slot: undefined, marts: [] }];
    }
  });
  return (await Promise.all(answers)).flat();
}
