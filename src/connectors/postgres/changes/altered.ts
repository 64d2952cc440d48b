import { relationName, relationNamed } from "../../../domain/relation-name.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { WatchedPosition } from "../../follower.ts";
import type { Fingerprint } from "./fingerprint.ts";
import type { NamedRelation } from "./recording.ts";
import { readSurroundings, surroundingsIn } from "./surroundings.ts";

/** What a watcher notices although no row was changed: tables, views, types and the like are not as a position has them. */

/** The prints of these tables and views as they are now. */
type PrintsOf = (tables: readonly NamedRelation[], views: readonly NamedRelation[]) => Promise<Fingerprint>;

export async function findAltered<P extends WatchedPosition>(
  session: SqlSession,
  positions: readonly P[],
  printsOf: PrintsOf,
): Promise<readonly P[]> {
  const tables = [...(await namesByOid(session, positions)).values()];
  const views = new Set(positions.flatMap(({ position }) => namesAfter("view ", position.fingerprint)));
  const present = await printsOf(
    tables,
    [...views].flatMap((view) => relationNamed(view) ?? []),
  );
  const around = await readSurroundings(session, surroundingsIn(positions.map(({ position }) => position.fingerprint)));
  return positions.filter(({ position }) => isAltered(position.fingerprint, { ...present, ...around }));
}

/** One that was dropped is missing, and so is its print. */
async function namesByOid(
  session: SqlSession,
  positions: readonly WatchedPosition[],
): Promise<ReadonlyMap<string, NamedRelation>> {
  const oids = positions
    .flatMap(({ position, tables }) => tables.map((relation) => position.fingerprint[`table ${relation}`] ?? ""))
    .filter((oid) => /^\d+$/.test(oid));
  const { rows } = await session.query(
    `SELECT c.oid::text AS oid, n.nspname AS schema, c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = ANY ($1::oid[])`,
    [[...new Set(oids)]],
  );
  return new Map(rows.map(({ oid, schema, name }) => [String(oid), { schema: String(schema), name: String(name) }]));
}

const namesAfter = (start: string, fingerprint: Fingerprint): readonly string[] =>
  Object.keys(fingerprint).flatMap((name) => (name.startsWith(start) ? [name.slice(start.length)] : []));

const WATCHED =
  /^(table|parts of|computed columns of|storage of|trigger of|shape of|published|identity of|view|type|setting) |^(server|timeline|start|slot|publication|text search)$/;

function isAltered(before: Fingerprint, present: Fingerprint): boolean {
  return Object.entries(before).some(([name, print]) => WATCHED.test(name) && present[name] !== print);
}

/** Where nothing can be told: those whose runs have not said so yet. */
export function toBeTold(positions: readonly WatchedPosition[]): readonly string[] {
  return positions.flatMap((one) => (waits(one) ? [] : one.pipelineId));
}

const waits = ({ ifRecorded }: WatchedPosition): boolean => ifRecorded === true;

/** The relations among these whose changes are not recorded, or that are not there. */
type LackingAmong = (tables: readonly NamedRelation[]) => Promise<ReadonlySet<string>>;

/**
 * Those that wait for their tables, and still have reason to. A table is looked for by its oid, because it may have another
 * name by now, and otherwise by its name: it may have been made again. What only a plan knows is left to the run.
 */
export async function findWaiting<P extends WatchedPosition>(
  session: SqlSession,
  positions: readonly P[],
  lackingAmong: LackingAmong,
): Promise<ReadonlySet<P>> {
  const waiting = positions.filter(waits);
  if (waiting.length === 0) return new Set();
  const known = await namesByOid(session, waiting);
  const namesFor = ({ position, tables }: P): readonly NamedRelation[] =>
    tables.flatMap((table) => known.get(position.fingerprint[`table ${table}`] ?? "") ?? relationNamed(table) ?? []);
  const lacking = await lackingAmong(waiting.flatMap(namesFor));
  return new Set(waiting.filter((one) => namesFor(one).some((table) => lacking.has(relationName(table)))));
}
