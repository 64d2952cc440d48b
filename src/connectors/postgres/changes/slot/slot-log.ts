import { VitrinaError } from "../../../../domain/error-catalogue.ts";
import type { Client } from "../../../../postgres/connection.ts";
import type { FollowedTable, ImagesOf } from "../../../../sql-analysis/follow-plan.ts";
import { withDeadline } from "../../deadline.ts";
import { connectToSource, type PostgresSourceConfig, rememberingPlans } from "../../read-session.ts";
import type { ChangeLog, LogPlace, Recording, RoundChanges, RoundImages } from "../change-log.ts";
import { imageValues } from "../images.ts";
import { recordedName, watchedTables } from "../recorder.ts";
import { ChangeCollector, type CollectedImages } from "./collect.ts";
import { readSlotRecording } from "./facts.ts";
import { peekMessages, UndecodableChanges } from "./peek.ts";
import { slotPrints, slotProblems } from "./problems.ts";
import { lsnNumber, lsnText, readSnapshotText, shows } from "./snapshot.ts";

/**
 * The WAL behind a replication slot. Nothing is copied and nobody collects: a round decodes what is there, and leaves the
 * slot where it is. The watcher moves the slot when every pipeline has seen what is before it.
 */
export function slotLog(config: PostgresSourceConfig, slot: string): ChangeLog {
  const disk = openDisk(config);
  return {
    async begin(client, beginning) {
      const confirmed = await readConfirmed(client, slot);
      await client.query(beginning);
      return {
        async read(tables, named): Promise<Recording> {
          const facts = await readSlotRecording(rememberingPlans(client), slot, tables, named);
          return { facts, problems: slotProblems(facts, slot, tables), prints: slotPrints(facts, slot) };
        },
        changesOf: (tables, recording) => readChanges({ client, slot, disk, confirmed, tables, recording }),
      };
    },
    async hasChangedSince(session, { lsn }) {
      const { rows } = await session.query("SELECT pg_current_wal_insert_lsn()::text AS written");
      return rows[0]?.["written"] !== lsn;
    },
    close: () => disk.close(),
  };
}

const CONFIRMED = `
  SELECT s.confirmed_flush_lsn::text AS confirmed FROM pg_replication_slots s WHERE s.slot_name = $1`;

/** Up to where what all pipelines had seen is forgotten. Undefined: there is no such slot, or it is not one that decodes. */
async function readConfirmed(client: Client, slot: string): Promise<string | undefined> {
  const { rows } = await client.query<{ confirmed: string | null }>(CONFIRMED, [slot]);
  return rows[0]?.confirmed ?? undefined;
}

const NOW = `
  SELECT pg_current_snapshot()::text AS snapshot, pg_current_wal_insert_lsn()::text AS written,
         (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())::text AS database`;

interface OpenedChanges {
  readonly client: Client;
  readonly slot: string;
  readonly disk: Disk;
  /** Where the slot was before the snapshot of the round. */
  readonly confirmed: string | undefined;
  readonly tables: readonly FollowedTable[];
  readonly recording: Recording;
}

async function readChanges(opened: OpenedChanges): Promise<RoundChanges> {
  const { client, slot, disk, confirmed } = opened;
  const { rows } = await client.query<Record<"snapshot" | "written" | "database", string>>(NOW);
  const { snapshot = "", written = "", database = null } = rows[0] ?? {};
  // Nothing was decoded yet. Commits before the slot's own place are visible, because every position that it was moved by
  // shows them. Of no other place is that known: a commit is on the disk before it is visible, for as long as a standby
  // does not answer, and a snapshot does not tell of it, because it names no transaction above all that have ended.
  let place: LogPlace = { snapshot, lastChange: null, forgotten: {}, lsn: confirmed, slotLsn: confirmed };
  return {
    database,
    get place() {
      return place;
    },
    async since(earlier, limit) {
      const flushed = await disk.flushedAfter(client, written);
      const isBack = !shows(readSnapshotText(snapshot), readSnapshotText(earlier.snapshot));
      if (isBack || isBefore(flushed, earlier.lsn)) return { kind: "lost", reason: WENT_BACK };
      if (flushed === earlier.lsn) {
        place = { ...place, lsn: flushed };
        return { kind: "found", counts: [], images: () => collectedImages(opened, () => new Map()) };
      }
      const collector = new ChangeCollector({
        now: readSnapshotText(snapshot),
        since: readSnapshotText(earlier.snapshot),
        tables: watchedTables(opened.tables),
        parts: opened.recording.facts.parts,
      });
      const read = await readAll(client, slot, collector, limit);
      if (read === "undecodable") {
        const why = "The publication of the slot was missing for a while, and what changed then cannot be decoded.";
        return { kind: "lost", reason: why };
      }
      // Looked at last: the slot is never moved back, so it has not been further while it was read.
      const reason = await whyChangesAreLost(opened, earlier);
      if (reason !== undefined) return { kind: "lost", reason };
      const { firstInvisible } = collector;
      if (read === "all") place = { ...place, lsn: firstInvisible === undefined ? flushed : lsnText(firstInvisible) };
      const { counts } = collector;
      return { kind: "found", counts, images: () => collectedImages(opened, (table) => collector.imagesOf(table)) };
    },
  };
}

const WENT_BACK = "The source went back to an earlier state: it was restored, or a standby took its place.";

const isBefore = (lsn: string, other: string | undefined): boolean =>
  other !== undefined && lsnNumber(lsn) < lsnNumber(other);

async function whyChangesAreLost(
  { client, slot }: OpenedChanges,
  { lsn, slotLsn }: LogPlace,
): Promise<string | undefined> {
  const confirmed = await readConfirmed(client, slot);
  if (confirmed !== undefined && isBefore(confirmed, slotLsn)) return WENT_BACK;
  if (lsn !== undefined && confirmed !== undefined && lsnNumber(confirmed) <= lsnNumber(lsn)) return undefined;
  return `The slot ${slot} is past changes that were not read yet: it was recreated, moved by somebody, or would have kept more WAL than its limit.`;
}

async function readAll(
  client: Client,
  slot: string,
  collector: ChangeCollector,
  limit: number,
): Promise<"all" | "part" | "undecodable"> {
  try {
    for await (const message of peekMessages(client, slot)) {
      collector.add(message);
      if (collector.changes > limit) return "part";
    }
    return "all";
  } catch (error) {
    if (error instanceof UndecodableChanges) return "undecodable";
    throw error;
  }
}

/**
 * Images are values of the statement: one array for each column, and one that tells which rows are old. The planner knows
 * how many there are.
 */
function collectedImages(
  { tables, recording }: OpenedChanges,
  imagesOf: (relation: string) => CollectedImages,
): RoundImages {
  const { columns } = recording.facts;
  const values: unknown[] = [];
  const made = new Map<string, ReturnType<ImagesOf>>();
  const add = (array: readonly unknown[], type: string): string => `$${values.push(array)}::${type}[]`;
  const make = (relation: string): ReturnType<ImagesOf> => {
    const table = tables.find((one) => recordedName(one) === relation);
    const all = [...imagesOf(relation)];
    const rows = all.map(([image]) => JSON.parse(image) as (string | null)[]);
    const names = (table?.imageColumns ?? []).map((_, n) => `c${n + 1}`);
    const arrays = [
      ...names.map((_, n) =>
        add(
          rows.map((row) => row[n] ?? null),
          "text",
        ),
      ),
      add(
        all.map(([, isOld]) => isOld),
        "boolean",
      ),
    ];
    const select = `SELECT ${imageValues(table, columns, (_, n) => `i.c${n + 1}`)}
         FROM unnest(${arrays.join(", ")}) AS i (${[...names, "is_old"].join(", ")})`;
    return { changed: `(${select})`, old: `(${select} WHERE i.is_old)` };
  };
  return {
    values,
    images(of) {
      const relation = recordedName(of);
      const known = made.get(relation) ?? make(relation);
      made.set(relation, known);
      return known;
    },
  };
}

/** It is one commit. */
const FLUSHED_WITHIN_MS = 30_000;

interface Disk {
  /** The place up to which the WAL is on the disk, once that is at least this one. */
  flushedAfter(client: Client, written: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * A slot tells of what is on the server's disk. A commit with synchronous_commit = off is visible before it is there, so
 * that a snapshot may show what cannot be decoded yet. A commit of our own that is written through takes everything
 * before it along. It has a session of its own, because that of the round must keep its snapshot.
 */
function openDisk(config: PostgresSourceConfig): Disk {
  let connected: Promise<Client> | undefined;
  const close = async (): Promise<void> => {
    const client = await connected?.catch(() => undefined);
    connected = undefined;
    await client?.end().catch(() => undefined);
  };
  return {
    close,
    async flushedAfter(client, written) {
      const flushed = await flushedNow(client);
      if (lsnNumber(flushed) >= lsnNumber(written)) return flushed;
      // Not even a standby is waited for.
      connected ??= connectToSource(config, { synchronous_commit: "local" });
      try {
        const own = await connected;
        // The deadline of the round ends the round's session, and would leave this one waiting.
        await withDeadline(own, FLUSHED_WITHIN_MS, config, () =>
          own.query("SELECT pg_logical_emit_message(true, 'vitrina', '')"),
        );
      } catch (error) {
        await close();
        throw error;
      }
      const after = await flushedNow(client);
      if (lsnNumber(after) >= lsnNumber(written)) return after;
      throw new VitrinaError("DATABASE_BUSY", "The source has not written its latest changes to the disk yet.");
    },
  };
}

async function flushedNow(client: Client): Promise<string> {
  const { rows } = await client.query<{ lsn: string }>("SELECT pg_current_wal_flush_lsn()::text AS lsn");
  return rows[0]?.lsn ?? "0/0";
}
