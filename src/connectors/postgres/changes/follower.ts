import { VitrinaError } from "../../../domain/error-catalogue.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { Client } from "../../../postgres/connection.ts";
import { quoteTable } from "../../../postgres/identifiers.ts";
import type { FollowPlan } from "../../../sql-analysis/follow-plan.ts";
import { NO_SURROUNDINGS, type QuerySurroundings } from "../../../sql-analysis/query-facts.ts";
import { mentionsIn } from "../../../sql-guard/mentions.ts";
import { statementsOf } from "../../../sql-guard/tree.ts";
import type { Follower, FollowRequest, FollowRound } from "../../follower.ts";
import {
  BEGIN,
  PLAN_AS_USUAL,
  PLAN_ONCE,
  type PostgresSourceConfig,
  questionSession,
  rememberingPlans,
} from "../read-session.ts";
import { askServer } from "../source-mark.ts";
import type { ChangeLog, Recording, RoundLog } from "./change-log.ts";
import { openChangeLog } from "./change-logs.ts";
import { definitionPrint, type Fingerprint, fingerprintOf, type ServerFacts } from "./fingerprint.ts";
import { recordedNameIn, watchedTables } from "./recorder.ts";
import { type NamedRelation, reachedFrom } from "./recording.ts";
import { openRoundIn } from "./round.ts";
import { roundSession } from "./round-session.ts";
import { readServerHistory } from "./server-history.ts";
import { areAlike, isAlone, surroundingsFrom, surroundingValues } from "./surroundings.ts";

/** Derives the ways from the tables of a query to its key. The session is outside any transaction. */
export type PlanMaker = (session: SqlSession, request: FollowRequest) => Promise<FollowPlan>;

/** One session for all rounds; each round is a transaction, and so one snapshot. */
export async function openFollower(
  config: PostgresSourceConfig,
  request: FollowRequest,
  makePlan: PlanMaker,
): Promise<Follower> {
  const questions = questionSession(config);
  const log = openChangeLog(config);
  const named = await relationsIn(request.query);
  // Before the plan: if something is altered in between, the first round notices.
  const { shape } = await questions.ask((client) => readPresent(client, named, NO_SURROUNDINGS));
  let plan = await questions.lend((session) => makePlan(session, request));
  let readable = await questions.ask((client) => readableTables(client, plan, named));
  // It connects again when there is another question, which is rare.
  await questions.close();
  const first = plan.surroundings;
  const planned: Present = { shape, around: first.prints };
  let current = planned;
  const session = roundSession(config);

  const openRound = async (client: Client): Promise<FollowRound> => {
    const roundLog = await beginRound(client, config, log, readable);
    const { surroundings } = plan;
    const present = await readPresent(rememberingPlans(client), named, surroundings, "pg_export_snapshot()");
    if (!isSame(current, present)) {
      await client.query("ROLLBACK");
      plan = await questions.lend((session) => makePlan(session, request));
      readable = await questions.ask((asked) => readableTables(asked, plan, named));
      await questions.close();
      current = { shape: present.shape, around: plan.surroundings.prints };
      return openRound(client);
    }
    const recording = await requireRecorded(roundLog, plan, named);
    await client.query(PLAN_AS_USUAL);
    const changes = await roundLog.changesOf(plan.tables, recording);
    const more = { ...recording.prints, ...present.around };
    const history = await readServerHistory(client);
    const server = { ...(await readServer(client)), database: changes.database, start: history?.start };
    const fingerprint = fingerprintOf(recording.facts, more, server, definitionPrint(request, plan));
    const exportedSnapshot = present.more;
    const { giveUp, end: onClose } = session;
    const of = { client, config, request, plan };
    return openRoundIn({ ...of, changes, fingerprint, history, exportedSnapshot, giveUp, onClose });
  };

  return {
    get plan() {
      return plan;
    },
    openRound: () => session.begin(openRound),
    hasChangedSince: (position) => session.ask((asked) => log.hasChangedSince(asked, position, plan.tables)),
    isCurrent: async () => isSame(planned, await session.ask((asked) => readPresent(asked, named, first))),
    async close() {
      await session.giveUp();
      await questions.close();
      await log.close();
    },
  };
}

async function relationsIn(query: string): Promise<readonly NamedRelation[]> {
  const statements = await statementsOf(query);
  if (!("length" in statements)) throw new VitrinaError("INTERNAL", "A query was followed before it was examined.");
  return statements.flatMap(({ node }) => mentionsIn(node).relations);
}

/**
 * All columns of all relations that a query reaches, their row-level security, and the rules of the views: what a plan is made
 * from. Their names, too: a rule goes on with a table that was renamed, and the plan with whatever has its name by now.
 */
const SHAPE = `
  ${reachedFrom("$1")}
  SELECT md5(string_agg(facts, E'\\n' ORDER BY facts)) AS shape
    FROM reached
   CROSS JOIN LATERAL (
     SELECT concat_ws(' ', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attnotnull) AS facts
       FROM pg_attribute a WHERE a.attrelid = relid AND a.attnum > 0 AND NOT a.attisdropped
     UNION ALL
     SELECT concat_ws(' ', c.oid, c.relrowsecurity, ${recordedNameIn("n", "c")})
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relid
     UNION ALL
     SELECT md5(r.ev_action::text) FROM pg_rewrite r WHERE r.ev_class = relid AND r.ev_type = '1'
   ) AS one`;

/** What a plan is made from, and a fingerprint in part. */
interface Present {
  readonly shape: string;
  readonly around: Fingerprint;
}

/** By one question, which may say more. */
async function readPresent(
  session: SqlSession,
  named: readonly NamedRelation[],
  surroundings: QuerySurroundings,
  more = "NULL",
): Promise<Present & { readonly more: string }> {
  const isMore = !isAlone(surroundings);
  const { rows } = await session.query(
    `SELECT ${more} AS more, (${SHAPE}), ${isMore ? surroundingsFrom(2) : "'{}'"} AS around`,
    [JSON.stringify(named), ...(isMore ? surroundingValues(surroundings) : [])],
  );
  const row = rows[0] ?? {};
  return {
    more: String(row["more"]),
    shape: String(row["shape"]),
    around: JSON.parse(String(row["around"])) as Fingerprint,
  };
}

const isSame = (before: Present, now: Present): boolean =>
  before.shape === now.shape && areAlike(before.around, now.around);

const READABLE = `
  SELECT n.nspname AS schema, c.relname AS table
    FROM jsonb_to_recordset($1::jsonb) AS w (schema name, name name)
    JOIN pg_namespace n ON n.nspname = w.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
   WHERE has_table_privilege(c.oid, 'SELECT') AND c.relkind IN ('r', 'p', 'v')
   ORDER BY c.relkind <> 'v', c.oid`;

type ReadableTable = { readonly schema: string; readonly table: string };

/**
 * Only these can be locked: a view may show tables that its reader may not read, and locks them with itself. Views come
 * first, as for somebody who drops a view to alter its table; he would otherwise meet a deadlock instead of waiting.
 */
async function readableTables(
  client: Client,
  plan: FollowPlan,
  named: readonly NamedRelation[],
): Promise<readonly ReadableTable[]> {
  const names = [...named, ...plan.tables].map(({ schema, name }) => ({ schema, name }));
  return (await client.query<ReadableTable>(READABLE, [JSON.stringify(names)])).rows;
}

/**
 * Locks come before the snapshot: TRUNCATE does not leave old rows for those who have an old one, so no followed table
 * should be emptied from now on, or be rewritten.
 */
async function beginRound(
  client: Client,
  config: PostgresSourceConfig,
  log: ChangeLog,
  readable: readonly ReadableTable[],
): Promise<RoundLog> {
  const beginning = `${BEGIN}; SET LOCAL statement_timeout = ${config.readTimeoutMs}; ${PLAN_ONCE}`;
  const begun = await log.begin(client, beginning);
  if (readable.length > 0) await client.query(`LOCK TABLE ${readable.map(quoteTable).join(", ")} IN ACCESS SHARE MODE`);
  return begun;
}

const MOST_PROBLEMS = 5;

async function requireRecorded(log: RoundLog, plan: FollowPlan, named: readonly NamedRelation[]): Promise<Recording> {
  const recording = await log.read(watchedTables(plan.tables), named);
  const messages = [...new Set(recording.problems.map(({ message }) => message))];
  if (messages.length === 0) return recording;
  const more = messages.length > MOST_PROBLEMS ? [`And ${messages.length - MOST_PROBLEMS} more.`] : [];
  throw new VitrinaError("CHANGES_NOT_RECORDED", [...messages.slice(0, MOST_PROBLEMS), ...more].join(" "));
}

async function readServer(client: Client): Promise<Pick<ServerFacts, "system" | "timeline">> {
  const { system = null, timeline = null } = await askServer(client);
  return { system, timeline };
}
