import { VitrinaError } from "../../../../domain/error-catalogue.ts";
import type { ChangesFrom } from "../../../../domain/follow.ts";
import { relationName } from "../../../../domain/relation-name.ts";
import type { SqlSession } from "../../../../domain/sql-session.ts";
import { sqlState } from "../../../../postgres/errors.ts";
import type { ChangeWatch, WatchedPosition } from "../../../follower.ts";
import { type PostgresSourceConfig, questionSession } from "../../read-session.ts";
import { findAltered, findWaiting, toBeTold } from "../altered.ts";
import { type Fingerprint, shapePrints, tablePrints, viewPrints } from "../fingerprint.ts";
import { knownServer } from "../known-server.ts";
import type { RecordedTable } from "../recorder.ts";
import type { NamedRelation } from "../recording.ts";
import { readSlotRecording } from "./facts.ts";
import { advanceSlot } from "./forget.ts";
import { UndecodableChanges } from "./peek.ts";
import { slotPrints, slotProblems } from "./problems.ts";
import { type FollowedPart, scanBehind } from "./scan.ts";
import { lsnNumber, readSnapshotText, type Snapshot, shows } from "./snapshot.ts";

type Slot = Extract<ChangesFrom, { kind: "slot" }>;

/** What is behind the slot is decoded at each question, so it is worth keeping that short. */
const FORGET_EVERY_MS = 5000;
/**
 * A position that is this much WAL behind holds the slot back, although nothing concerns its pipeline: an empty round
 * moves it.
 */
const FAR_BEHIND = 64n * 1024n * 1024n;

/** Their runs say what is missing. */
const NOT_THERE = ["42704", "42501", "55000"];

export function watchSlot(config: PostgresSourceConfig, slot: Slot): ChangeWatch {
  const session = questionSession(config);
  const quiet = new QuietPositions();
  const server = knownServer();
  return {
    forgetEveryMs: FORGET_EVERY_MS,
    async changedSince(positions) {
      if (positions.length === 0) return [];
      try {
        return await session.ask(async (client) =>
          changedSince(client, slot.name, positions, quiet, await server(client)),
        );
      } catch (error) {
        if (isMissing(error)) return toBeTold(positions);
        throw error;
      }
    },
    forgetSeen: (positions) => session.ask((client) => advanceSlot(client, slot, positions)),
    close: () => session.close(),
  };
}

function isMissing(error: unknown): boolean {
  if (error instanceof UndecodableChanges) return true;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (error instanceof VitrinaError && code === "CHANGES_NOT_RECORDED") return true;
  return cause instanceof UndecodableChanges || NOT_THERE.includes(sqlState(cause) ?? "");
}

/** Positions without changes behind them, for as long as the server writes nothing. */
class QuietPositions {
  #flushed = "";
  readonly #snapshots = new Map<string, string>();

  /** All of them were found to be quiet, at this very place. */
  has(positions: readonly WatchedPosition[], flushed: string): boolean {
    if (flushed !== this.#flushed) return false;
    return positions.every(({ pipelineId, position }) => this.#snapshots.get(pipelineId) === position.snapshot);
  }

  note(positions: readonly WatchedPosition[], flushed: string): void {
    if (flushed !== this.#flushed) this.#snapshots.clear();
    this.#flushed = flushed;
    for (const { pipelineId, position } of positions) this.#snapshots.set(pipelineId, position.snapshot);
  }
}

const NOW = `
  SELECT pg_current_snapshot()::text AS snapshot, pg_current_wal_flush_lsn()::text AS flushed,
         (SELECT s.confirmed_flush_lsn FROM pg_replication_slots s WHERE s.slot_name = $1)::text AS confirmed`;

interface Now {
  readonly snapshot: Snapshot;
  readonly flushed: string;
  /** Undefined: there is no such slot. */
  readonly confirmed: bigint | undefined;
}

async function readNow(session: SqlSession, slot: string): Promise<Now> {
  const { rows } = await session.query(NOW, [slot]);
  const { snapshot, flushed, confirmed } = rows[0] as Record<string, string | null>;
  return {
    snapshot: readSnapshotText(snapshot ?? ""),
    flushed: flushed ?? "0/0",
    confirmed: confirmed == null ? undefined : lsnNumber(confirmed),
  };
}

async function changedSince(
  session: SqlSession,
  slot: string,
  positions: readonly WatchedPosition[],
  quiet: QuietPositions,
  server: Fingerprint,
): Promise<readonly string[]> {
  const now = await readNow(session, slot);
  const changed = new Set(positions.filter((one) => isLost(one, now)));
  const kept = positions.filter((one) => !changed.has(one));
  let parts: readonly FollowedPart[] = [];
  const altered = await findAltered(session, kept, async (tables, views) => {
    const facts = await readSlotRecording(session, slot, withoutColumns(tables), views);
    parts = facts.parts;
    return {
      ...server,
      ...viewPrints(facts.views),
      ...tablePrints(facts.parts),
      ...shapePrints(facts.shapes),
      ...slotPrints(facts, slot),
    };
  });
  for (const one of altered) changed.add(one);
  const rest = kept.filter((one) => !changed.has(one));
  if (!quiet.has(rest, now.flushed)) {
    for (const one of await findBehind(session, slot, now, rest, parts, quiet)) changed.add(one);
  }
  const waiting = await findWaiting(session, [...changed], (tables) => lackingAmong(session, slot, tables));
  return positions.filter((one) => changed.has(one) && !waiting.has(one)).map(({ pipelineId }) => pipelineId);
}

async function lackingAmong(
  session: SqlSession,
  slot: string,
  tables: readonly NamedRelation[],
): Promise<ReadonlySet<string>> {
  const wanted = withoutColumns(tables);
  const facts = await readSlotRecording(session, slot, wanted, []);
  const found = new Set(facts.parts.map(({ relation }) => relation));
  const gone = tables.map(relationName).filter((table) => !found.has(table));
  return new Set([...gone, ...slotProblems(facts, slot, wanted).map(({ relation }) => relation)]);
}

/** Only a plan knows which columns are needed. */
const withoutColumns = (tables: readonly NamedRelation[]): readonly RecordedTable[] =>
  tables.map((table) => ({ ...table, imageColumns: [], readColumns: [] }));

/** The round says why. */
function isLost({ position: { lsn, snapshot } }: WatchedPosition, now: Now): boolean {
  const [place, end] = [lsnNumber(lsn ?? "0/0"), lsnNumber(now.flushed)];
  // Beyond the end of the WAL: the server has gone back.
  const isKept = now.confirmed !== undefined && now.confirmed <= place && place <= end;
  return !isKept || !shows(now.snapshot, readSnapshotText(snapshot));
}

/** Those that have changes behind them, or that hold the slot back. */
async function findBehind(
  session: SqlSession,
  slot: string,
  { snapshot, flushed }: Now,
  positions: readonly WatchedPosition[],
  parts: readonly FollowedPart[],
  quiet: QuietPositions,
): Promise<readonly WatchedPosition[]> {
  const { waiting, firstInvisible } = await scanBehind(session, slot, snapshot, positions, parts);
  // Where a round of now would get to: one that cannot get any further is not worth it.
  const end = firstInvisible ?? lsnNumber(flushed);
  const behind = positions.filter(
    ({ position }, n) => waiting[n]?.changes !== 0 || end - lsnNumber(position.lsn ?? "0/0") > FAR_BEHIND,
  );
  // What is not visible yet may become so without a further write.
  if (firstInvisible === undefined) {
    quiet.note(
      positions.filter((one) => !behind.includes(one)),
      flushed,
    );
  }
  return behind;
}
