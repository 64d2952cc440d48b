import pg from "pg";
import { inject } from "vitest";
import type { ChangeWatch, Follower, FollowRound, KeysOfRound, RoundKeys } from "../../src/connectors/follower.ts";
import { openFollower } from "../../src/connectors/postgres/changes/follower.ts";
import type { RecordedTable } from "../../src/connectors/postgres/changes/recorder.ts";
import { changesScript } from "../../src/connectors/postgres/changes/script.ts";
import { slotRemovalScript, slotScript } from "../../src/connectors/postgres/changes/slot/script.ts";
import { watchChanges } from "../../src/connectors/postgres/changes/watch.ts";
import type { PostgresSourceConfig } from "../../src/connectors/postgres/read-session.ts";
import type { ChangesFrom, FollowPosition } from "../../src/domain/follow.ts";
import type { FollowedTable, FollowPlan, ImagesOf } from "../../src/sql-analysis/follow-plan.ts";
import { NO_SURROUNDINGS } from "../../src/sql-analysis/query-facts.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** A source whose changes are recorded, and plans that are written by hand. */

export const LIMITS = { maxChanges: 1000, maxKeys: 1000 };

export interface FollowedSource extends TestDatabase {
  readonly config: PostgresSourceConfig;
  /** As the owner would, by the script of the change table or of the slot. */
  install(tables: readonly RecordedTable[], limits?: { maxRows?: number; maxAgeHours?: number }): Promise<void>;
  follow(query: WrittenQuery): Promise<FollowedQuery>;
  watch(): ChangeWatch;
  /** A session of its own, of the administrator or of somebody else. */
  connect(url?: string): Promise<pg.Client>;
}

/** A query with its plan, by hand. */
export interface WrittenQuery {
  readonly query: string;
  readonly key: readonly string[];
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly tables: readonly FollowedTable[];
}

type FoundKeys = Omit<KeysOfRound, "mayLackKeys"> | Extract<RoundKeys, { kind: "everything" }>;

export interface FollowedQuery {
  readonly follower: Follower;
  /** The position of now. */
  start(): Promise<FollowPosition>;
  /** What a round says since a position; sorted. */
  since(position: FollowPosition, limits?: typeof LIMITS): Promise<FoundKeys>;
  inRound<T>(use: (round: FollowRound) => Promise<T>): Promise<T>;
}

/** `slot`: its changes are told by a slot of that server. */
export async function openFollowedSource(
  slot?: { readonly serverUrl: string } & Extract<ChangesFrom, { kind: "slot" }>,
): Promise<FollowedSource> {
  const database = await createTestDatabase(slot?.serverUrl ?? inject("postgresUrl"));
  await database.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    ALTER DEFAULT PRIVILEGES IN SCHEMA content GRANT SELECT ON TABLES TO vitrina_reader`);
  const config = { ...sourceConfig(database.urls.reader), changes: slot };
  const opened: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(one: T): T => {
    opened.push(one);
    return one;
  };
  return {
    ...database,
    config,
    async install(tables, limits = {}) {
      const reader = "vitrina_reader";
      const script = slot && slotScript({ name: slot.name, tables, reader });
      await database.query(script ?? changesScript({ tables, reader, ...limits }));
    },
    async follow(query) {
      const followed = await followIn(config, query);
      keep(followed.follower);
      return followed;
    },
    watch: () => keep(watchChanges(config)),
    async connect(url = database.url) {
      const client = new pg.Client({ connectionString: url });
      client.on("error", () => undefined);
      await client.connect();
      keep({ close: () => client.end() });
      return client;
    },
    async drop() {
      await Promise.all(opened.map((one) => one.close()));
      // A database that has one cannot be dropped.
      if (slot !== undefined) await database.query(slotRemovalScript(slot.name));
      await database.drop();
    },
  };
}

export const sourceConfig = (url: string): PostgresSourceConfig => ({
  url,
  applicationName: "vitrina test",
  readTimeoutMs: 60_000,
  batchBytes: 1 << 20,
});

/** In any source; the follower is closed by the caller. */
export async function followIn(config: PostgresSourceConfig, query: WrittenQuery): Promise<FollowedQuery> {
  return followedQuery(await openFollower(config, { ...query, tables: {} }, planOf(query)));
}

function planOf({ query, key, columns, tables }: WrittenQuery): () => Promise<FollowPlan> {
  const typeOf = (name: string): string => columns.find((column) => column.name === name)?.type ?? "text";
  return async () => ({
    tables,
    refusals: [],
    warnings: [],
    surroundings: NO_SURROUNDINGS,
    restrictedTo: (keys) => {
      const values = keys.map(
        (one) => `(${one.map((value, n) => `'${value.replaceAll("'", "''")}'::${typeOf(key[n] ?? "")}`).join(", ")})`,
      );
      return `SELECT * FROM (${query}) AS r WHERE (${key.map((name) => `r."${name}"`).join(", ")}) IN (${values.join(", ")})`;
    },
  });
}

function followedQuery(follower: Follower): FollowedQuery {
  const inRound = async <T>(use: (round: FollowRound) => Promise<T>): Promise<T> => {
    const round = await follower.openRound();
    try {
      return await use(round);
    } finally {
      await round.close();
    }
  };
  return {
    follower,
    inRound,
    start: () => inRound(async ({ position }) => position),
    since: (position, limits = LIMITS) =>
      inRound(async (round) => {
        const found = await round.keysSince(position, limits);
        return found.kind === "keys" ? { kind: "keys", changes: found.changes, keys: [...found.keys].sort() } : found;
      }),
  };
}

/** A table of which the key of the mart is a column. */
export function keyedTable(
  schema: string,
  name: string,
  column: { readonly name: string; readonly type: string },
  readColumns: readonly string[] = [],
): FollowedTable {
  return {
    schema,
    name,
    imageColumns: [column],
    readColumns: [column.name, ...readColumns],
    change: {
      kind: "keys",
      statement: (images: ImagesOf) =>
        `SELECT DISTINCT c."${column.name.replaceAll('"', '""')}" FROM ${images({ schema, name }).changed} AS c WHERE c."${column.name.replaceAll('"', '""')}" IS NOT NULL`,
    },
  };
}

export const ID = { name: "id", type: "bigint" };
/** The simplest of all: one table, copied. */
export const FILM = keyedTable("content", "film", ID, ["title"]);
export const FILMS: WrittenQuery = {
  query: "SELECT id, title FROM content.film",
  key: ["id"],
  columns: [ID, { name: "title", type: "text" }],
  tables: [FILM],
};
