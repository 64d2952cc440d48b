import { relationName } from "../../../domain/relation-name.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { Client } from "../../../postgres/connection.ts";
import { sqlState } from "../../../postgres/errors.ts";
import type { ChangeWatch, WatchedPosition } from "../../follower.ts";
import { PLAN_ONCE, type PostgresSourceConfig, questionSession, rememberingPlans } from "../read-session.ts";
import { findAltered, findWaiting, toBeTold } from "./altered.ts";
import { findChanged } from "./change-table.ts";
import { type Fingerprint, shapePrints, tablePrints, triggerPrints, viewPrints } from "./fingerprint.ts";
import { knownServer } from "./known-server.ts";
import { CHANGES_SCHEMA } from "./recorder.ts";
import { type NamedRelation, readTables } from "./recording.ts";
import { partProblems } from "./recording-problems.ts";
import { watchSlot } from "./slot/watch.ts";

export function watchChanges(config: PostgresSourceConfig): ChangeWatch {
  return config.changes?.kind === "slot" ? watchSlot(config, config.changes) : watchChangeTable(config);
}

/** The change table, or the right to read it, is gone. */
const NOT_THERE = ["42P01", "3F000", "42501"];

/** It is asked for a few rows of an index. A server that went away without a word is given up after about a minute. */
const ANSWERS_WITHIN_MS = 30_000;

/** Looking for what may go costs about as much as asking for changes. */
const FORGET_EVERY_MS = 60_000;

function watchChangeTable(config: PostgresSourceConfig): ChangeWatch {
  const readTimeoutMs = Math.min(config.readTimeoutMs, ANSWERS_WITHIN_MS);
  const session = questionSession({ ...config, readTimeoutMs });
  const server = knownServer();
  return {
    forgetEveryMs: FORGET_EVERY_MS,
    async changedSince(positions) {
      if (positions.length === 0) return [];
      try {
        return await session.ask(async (client) => changedSince(client, positions, await server(client)));
      } catch (error) {
        // Their runs say what is missing.
        const state = sqlState((error as { cause?: unknown }).cause);
        if (state !== undefined && NOT_THERE.includes(state)) return toBeTold(positions);
        throw error;
      }
    },
    async forgetSeen(positions) {
      const seen = positions.flatMap(({ position, tables }) =>
        tables.map((relation) => ({ relation, snapshot: position.snapshot })),
      );
      await session.lend((lent) => forget(lent, JSON.stringify(seen)));
      // Whoever has lost changes is told so by the change table.
      return [];
    },
    close: () => session.close(),
  };
}

async function lackingAmong(client: Client, tables: readonly NamedRelation[]): Promise<ReadonlySet<string>> {
  const { parts } = await readTables(rememberingPlans(client), tables, []);
  const found = new Set(parts.map(({ relation }) => relation));
  const gone = tables.map(relationName).filter((table) => !found.has(table));
  return new Set([...gone, ...parts.flatMap((part) => (partProblems(part).length > 0 ? part.relation : []))]);
}

async function forget(session: SqlSession, seen: string): Promise<void> {
  // A standby forgets what its primary forgets.
  const { rows } = await session.query("SELECT pg_is_in_recovery() AS standby");
  if (rows[0]?.["standby"] !== "f") return;
  await session.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
  try {
    await session.query(`SELECT ${CHANGES_SCHEMA}.forget($1::jsonb)`, [seen]);
    await session.query("COMMIT");
  } catch (error) {
    await session.query("ROLLBACK");
    if (!NOT_THERE.includes(sqlState(error) ?? "")) throw error;
  }
}

async function changedSince(
  client: Client,
  positions: readonly WatchedPosition[],
  server: Fingerprint,
): Promise<readonly string[]> {
  const changed = await findChanged(client, positions);
  const rest = positions.filter((_, n) => !changed.has(n));
  await client.query(PLAN_ONCE);
  const altered = await findAltered(rememberingPlans(client), rest, async (tables, views) => {
    const facts = await readTables(rememberingPlans(client), tables, views);
    return {
      ...server,
      ...viewPrints(facts.views),
      ...tablePrints(facts.parts),
      ...triggerPrints(facts.parts),
      ...shapePrints(facts.shapes),
    };
  });
  const found = [...positions.filter((_, n) => changed.has(n)), ...altered];
  const waiting = await findWaiting(client, found, (tables) => lackingAmong(client, tables));
  return found.filter((one) => !waiting.has(one)).map(({ pipelineId }) => pipelineId);
}
