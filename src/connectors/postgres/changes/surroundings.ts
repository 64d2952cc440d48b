import { isDeepStrictEqual } from "node:util";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { QuerySurroundings } from "../../../sql-analysis/query-facts.ts";
import { FIRST_OWN_OID, FUNCTIONS_OF_COLUMNS, TYPES_NAMED } from "../../../sql-guard/audit-queries.ts";
import type { Fingerprint } from "./fingerprint.ts";
import { madeOf, makeupOf } from "./recording.ts";

/**
 * What the rows of a query depend on besides tables and views: types that no column of a table has, but an expression names;
 * how texts are taken apart for search; settings. It is found once, with the plan, and looked at in each round.
 */

/** A function that the query calls, with the types of its arguments and of its result. */
interface CalledFunction {
  readonly name: string;
  readonly types: readonly string[];
}

/** All that take a configuration, or take the default one. A dictionary is part of configurations. */
const isTextSearch = ({ name, types }: CalledFunction): boolean =>
  types.includes("regconfig") ||
  types.includes("regdictionary") ||
  /^(jsonb?_to_tsvector|to_tsvector|(plain|phrase|websearch_)?to_tsquery|ts_headline|ts_match_t[tq])$/.test(name);

const takes = ({ types }: CalledFunction, type: RegExp): boolean => types.some((one) => type.test(one));

/** Settings that a person or a locale chooses, so that they are not ours to choose; and who heeds them. */
const HEEDED: readonly (readonly [setting: string, isHeededBy: (call: CalledFunction) => boolean])[] = [
  ["default_text_search_config", isTextSearch],
  ["lc_time", (call) => /^to_(char|date|timestamp)$/.test(call.name) && takes(call, /^(date|timestamp|interval)/)],
  ["lc_numeric", (call) => /^to_(char|number)$/.test(call.name) && takes(call, /^(numeric|int\d|float\d)$/)],
  ["timezone_abbreviations", (call) => call.name === "timezone" && takes(call, /^text$/)],
];

/** `view` is the query as a temporary view; `calls` are rows of FUNCTIONS_CALLED. Before the definition is read, which names labels. */
export async function findSurroundings(
  session: SqlSession,
  view: string | undefined,
  calls: readonly Record<string, unknown>[],
  readsTimes: boolean,
): Promise<QuerySurroundings> {
  const { rows: ofColumns } = await session.query(FUNCTIONS_OF_COLUMNS, [[view]]);
  const { rows: named } = await session.query(TYPES_NAMED, [[view]]);
  const all = [...calls, ...ofColumns].map(({ name, types }) => ({
    name: String(name),
    types: String(types).split(","),
  }));
  const found = {
    types: named.map(({ oid }) => String(oid)),
    usesTextSearch: all.some(isTextSearch),
    settings: HEEDED.flatMap(([setting, isHeededBy]) =>
      all.some(isHeededBy) || (readsTimes && setting === "timezone_abbreviations") ? [setting] : [],
    ),
  };
  return { ...found, prints: await readSurroundings(session, found) };
}

type FoundSurroundings = Omit<QuerySurroundings, "prints">;

export const isAlone = ({ types, usesTextSearch, settings }: FoundSurroundings): boolean =>
  types.length === 0 && !usesTextSearch && settings.length === 0;

const VALUE = "value of ";

/** A type has no print that is made of nothing that anybody could alter. */
const OF_TYPES = (types: string): string => `
  WITH RECURSIVE made (root, oid) AS (
    SELECT one, one FROM unnest(${types}::oid[]) AS one
    UNION
    SELECT m.root, x.oid FROM made m CROSS JOIN LATERAL (${madeOf("m.oid")}) AS x (oid) WHERE m.oid >= ${FIRST_OWN_OID}
  )
  SELECT 'type ' || format_type(t.oid, NULL) AS name, concat_ws(' ', t.oid, md5(string_agg(f.fact, E'\\n' ORDER BY f.fact))) AS print
    FROM made m JOIN pg_type t ON t.oid = m.root CROSS JOIN LATERAL (${makeupOf("m.oid")}) AS f (fact)
   GROUP BY t.oid`;

/** Also those that came with PostgreSQL: people alter them. A dictionary that is altered reads its files again, so it need not differ. */
const OF_TEXT_SEARCH = (isUsed: string): string => `
  SELECT 'text search', md5(string_agg(fact, E'\\n' ORDER BY fact))
    FROM (
      SELECT concat_ws(' ', c.oid, c.cfgname, c.cfgnamespace, c.cfgparser) FROM pg_ts_config c WHERE ${isUsed}
      UNION ALL
      SELECT concat_ws(' ', m.mapcfg, m.maptokentype, m.mapseqno, m.mapdict) FROM pg_ts_config_map m WHERE ${isUsed}
      UNION ALL
      SELECT concat_ws(' ', d.oid, d.xmin, d.dictname, d.dictnamespace) FROM pg_ts_dict d WHERE ${isUsed}
    ) AS one (fact)
  HAVING ${isUsed}`;

/**
 * A setting by what is stored for the database and the role, which every session finds alike; and by what this session has
 * from there or from the server, as long as it lasts. Only the former can be watched from another session.
 */
const OF_SETTINGS = (settings: string): string => `
  SELECT 'setting ' || s.name, coalesce((
           SELECT string_agg(concat_ws(' ', r.setdatabase, r.setrole, one), ', ' ORDER BY r.setdatabase, r.setrole)
             FROM pg_db_role_setting r CROSS JOIN LATERAL unnest(r.setconfig) AS one
            WHERE r.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
              AND r.setrole IN (0, (SELECT u.oid FROM pg_roles u WHERE u.rolname = session_user))
              AND lower(split_part(one, '=', 1)) = s.name), '')
    FROM unnest(${settings}::text[]) AS s (name)
  UNION ALL
  SELECT '${VALUE}' || s.name, current_setting(s.name) FROM unnest(${settings}::text[]) AS s (name)`;

/** An object of the prints, as a text. `$n` and the two that follow are the values. */
export const surroundingsFrom = (n: number): string => `(
  SELECT coalesce(jsonb_object_agg(name, print), '{}') FROM (
    (${OF_TYPES(`$${n}`)}) UNION ALL (${OF_TEXT_SEARCH(`$${n + 1}::boolean`)}) UNION ALL (${OF_SETTINGS(`$${n + 2}`)})
  ) AS around)::text`;

export const surroundingValues = ({ types, usesTextSearch, settings }: FoundSurroundings): readonly unknown[] => [
  types,
  usesTextSearch,
  settings,
];

export async function readSurroundings(session: SqlSession, found: FoundSurroundings): Promise<Fingerprint> {
  if (isAlone(found)) return {};
  const { rows } = await session.query(`SELECT ${surroundingsFrom(1)} AS around`, [...surroundingValues(found)]);
  return JSON.parse(String(rows[0]?.["around"])) as Fingerprint;
}

/** As far as they are the same in every session. */
export function areAlike(before: Fingerprint, now: Fingerprint): boolean {
  const stored = (prints: Fingerprint) => Object.entries(prints).filter(([name]) => !name.startsWith(VALUE));
  return isDeepStrictEqual(stored(before), stored(now));
}

/** What the prints of these positions are about. */
export function surroundingsIn(fingerprints: readonly Fingerprint[]): FoundSurroundings {
  const all = fingerprints.flatMap((one) => Object.entries(one));
  const named = (start: string) => all.filter(([name]) => name.startsWith(start));
  const distinct = (some: readonly string[]): readonly string[] => [...new Set(some)];
  return {
    types: distinct(named("type ").flatMap(([, print]) => /^\d+/.exec(print) ?? [])),
    usesTextSearch: all.some(([name]) => name === "text search"),
    settings: distinct(named("setting ").map(([name]) => name.slice("setting ".length))),
  };
}
