import { expect, inject, it, vi } from "vitest";
import type { ChangeWatch } from "../../src/connectors/follower.ts";
import { watchChanges } from "../../src/connectors/postgres/changes/watch.ts";
import type { Source, SourceRef } from "../../src/connectors/source.ts";
import { FollowWatcher } from "../../src/data-plane/follow/watcher.ts";
import type { PipelineId } from "../../src/domain/pipeline.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { FollowingPipeline } from "../../src/meta-store/ports/follow.ts";
import { createTestDatabase } from "../support/database.ts";
import { recordingLog } from "../support/recording-log.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

/** What asks the sources for changes, with sources that answer late or never. */

function followingFrom(connection: string): FollowingPipeline {
  return {
    id: connection as PipelineId,
    name: connection,
    source_type: "postgres",
    source_connection: connection,
    checkEverySeconds: 0.1,
    mayStart: true,
    ifRecorded: false,
    position: { snapshot: "1:1:", fingerprint: {}, lastChange: null, forgotten: {} },
    tables: [],
  };
}

interface Fake {
  readonly watcher: FollowWatcher;
  readonly log: ReturnType<typeof recordingLog>;
  /** How often each source was asked. */
  readonly asked: Map<string, number>;
  readonly closed: Set<string>;
}

/** `answers`: what a source does when it is asked. Closing its session ends what it is asked. */
function watching(answers: Readonly<Record<string, (closed: Promise<never>) => Promise<readonly string[]>>>): Fake {
  const [asked, closed] = [new Map<string, number>(), new Set<string>()];
  const watchOf = (connection: string): ChangeWatch => {
    let end: (error: Error) => void = () => undefined;
    const ended = new Promise<never>((_, reject) => {
      end = reject;
    });
    ended.catch(() => undefined);
    return {
      forgetEveryMs: 3_600_000,
      changedSince: () => {
        asked.set(connection, (asked.get(connection) ?? 0) + 1);
        return answers[connection]?.(ended) ?? Promise.resolve([]);
      },
      forgetSeen: async () => [],
      close: async () => {
        closed.add(connection);
        end(new Error("The session was closed."));
      },
    };
  };
  const source = async ({ source_connection }: SourceRef) =>
    ({ watchChanges: async () => watchOf(source_connection), close: async () => undefined }) as unknown as Source;
  const follow = {
    outdated: async () => [],
    watched: async () => Object.keys(answers).map(followingFrom),
    positionsIn: async () => [],
    requestOnChange: async () => [],
  };
  const log = recordingLog();
  const store = { follow } as unknown as MetaStore;
  return { watcher: new FollowWatcher({ store, connectors: { source }, log, pollMs: 1000 }), log, asked, closed };
}

const never = (closed: Promise<never>): Promise<never> => closed;

it("a source that does not answer keeps the others from nothing, and is not asked twice at once", async () => {
  const { watcher, asked } = watching({ silent: never, quick: async () => [] });
  watcher.start();
  try {
    await until("the other one is asked again and again", async () => (asked.get("quick") ?? 0) >= 5);
    expect(asked.get("silent")).toBe(1);
  } finally {
    await watcher.stop();
  }
});

it("a question that is under way when the runner stops is ended, and nobody complains of it", async () => {
  const { watcher, asked, closed, log } = watching({ silent: never });
  watcher.start();
  await until("it is asked", async () => asked.has("silent"));
  await watcher.stop();
  expect([...closed]).toEqual(["silent"]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(log.entries).toEqual([]);
});

it("a server that went away without a word is given up after a minute, however long a read may take", async ({
  onTestFinished,
}) => {
  const database = await createTestDatabase(inject("postgresUrl"));
  onTestFinished(() => database.drop());
  const proxy = await startTcpProxy(database.url);
  onTestFinished(() => proxy.close());
  const silence = proxy.on({ direction: "to server", bytes: "jsonb_to_recordset", nth: 1, after: [] }, "silence");
  const config = { applicationName: "watching", readTimeoutMs: 600_000, batchBytes: 1 };
  const watch = watchChanges({ url: proxy.through(database.urls.reader), ...config });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { position, tables } = followingFrom("gone");
  const answer = watch.changedSince([{ pipelineId: "gone", position, tables }]).catch((error: unknown) => error);
  await until("it is asked", () => silence.acted);
  await vi.advanceTimersByTimeAsync(65_000);
  expect(await answer).toMatchObject({ code: "STATEMENT_TIMEOUT" });
  await watch.close();
});
