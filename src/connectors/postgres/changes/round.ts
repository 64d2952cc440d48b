import { plural } from "../../../domain/counted.ts";
import { VitrinaError } from "../../../domain/error-catalogue.ts";
import type { FollowPosition } from "../../../domain/follow.ts";
import type { Client } from "../../../postgres/connection.ts";
import { sqlState } from "../../../postgres/errors.ts";
import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import type { FollowedTable, FollowPlan } from "../../../sql-analysis/follow-plan.ts";
import type { FollowRequest, FollowRound, KeysOfRound, RoundKeys, RoundLimits } from "../../follower.ts";
import type { SourceReader } from "../../source-reader.ts";
import { copyRows } from "../copy-reader.ts";
import { withDeadline } from "../deadline.ts";
import { asSubquery } from "../query-text.ts";
import { extended, lockedSourceError, type PostgresSourceConfig } from "../read-session.ts";
import type { FoundChanges, RoundChanges } from "./change-log.ts";
import { differenceBetween, type Fingerprint } from "./fingerprint.ts";
import { recordedName } from "./recorder.ts";
import { type ServerHistory, whyHistoryIsLost } from "./server-history.ts";

interface OpenedRound {
  /** In the transaction of the round. */
  readonly client: Client;
  readonly config: PostgresSourceConfig;
  readonly request: FollowRequest;
  readonly plan: FollowPlan;
  readonly changes: RoundChanges;
  readonly fingerprint: Fingerprint;
  readonly history: ServerHistory | undefined;
  readonly exportedSnapshot: string;
  /** Ends the session: its transaction cannot go on. */
  giveUp(): Promise<void>;
  onClose(): void;
}

export function openRoundIn(round: OpenedRound): FollowRound {
  const { client, config, request, plan, changes, fingerprint, history, exportedSnapshot, giveUp, onClose } = round;
  let isOver = false;
  let isReading = false;
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    if (isOver || isReading) throw new VitrinaError("INTERNAL", "A round was asked while it was reading, or was over.");
    try {
      return await withDeadline(client, 2 * config.readTimeoutMs, config, question);
    } catch (error) {
      isOver = true;
      const failure = await lockedSourceError(client, error);
      await giveUp();
      throw failure;
    }
  };
  const open = async (rows: string): Promise<SourceReader> => {
    const read = await ask(() => openRows(round, rows));
    isReading = true;
    return {
      async read(limit) {
        const batch = await read(limit);
        if (batch.isLast) isReading = false;
        return batch;
      },
      async close() {
        if (!isReading || isOver) return;
        // Rows are still on their way: nothing else can be asked in this session.
        isOver = true;
        await giveUp();
      },
    };
  };
  return {
    get position() {
      return { ...changes.place, fingerprint, written: history?.written };
    },
    exportedSnapshot,
    keysSince: (since, limits) => ask(() => keysSince(round, since, limits)),
    open: (keys) => open(asSubquery(plan.restrictedTo(keys))),
    openWithoutKey: () => open(rowsWithoutKey(request)),
    async close() {
      if (!isOver) {
        isOver = true;
        if (isReading) await giveUp();
        else await client.query("ROLLBACK").catch(giveUp);
      }
      onClose();
    },
  };
}

async function keysSince(round: OpenedRound, since: FollowPosition, limits: RoundLimits): Promise<RoundKeys> {
  const everything = (reason: string): RoundKeys => ({ kind: "everything", reason });
  const different = differenceBetween(since.fingerprint, round.fingerprint);
  if (different !== undefined) return everything(different);
  const found = await round.changes.since(since, limits.maxChanges);
  if (found.kind === "lost") return everything(found.reason);
  const lost = whyHistoryIsLost(since, round.history);
  if (lost !== undefined) return everything(lost);

  const { counts } = found;
  const changes = counts.reduce((sum, { count }) => sum + count, 0);
  if (changes === 0) return { kind: "keys", changes, keys: [], mayLackKeys: false };
  const truncated = counts.find(({ isTruncated }) => isTruncated);
  if (truncated !== undefined) return everything(`${truncated.relation} was truncated.`);
  const incomplete = counts.find(({ isIncomplete }) => isIncomplete);
  if (incomplete !== undefined) return everything(`A change of ${incomplete.relation} could not be recorded.`);
  if (changes > limits.maxChanges)
    return everything(`More than ${plural(limits.maxChanges, "row was", "rows were")} changed.`);

  const changed = round.plan.tables.filter((table) => counts.some(({ relation }) => relation === recordedName(table)));
  const whole = changed.find(({ change }) => change.kind === "everything");
  if (whole !== undefined) return everything(`${recordedName(whole)} was changed, and every row depends on it.`);
  const computed = await readKeysIfPossible(round, found, changed, limits.maxKeys + 1);
  if (typeof computed === "string") return everything(computed);
  const { keys, mayLackKeys } = computed;
  if (keys.length > limits.maxKeys) return everything(`More than ${limits.maxKeys} keys are concerned.`);
  return { kind: "keys", changes, keys, mayLackKeys };
}

const DATA_EXCEPTION = /^22/;
const STATEMENT_TIMEOUT = "57014";

/**
 * The query filters rows before it computes with them; the ways to the keys do not. What cannot be computed for such a
 * row, as `v::int` of a text that is no number, must not stop the mart for ever. Nor must a plan that is bad for so many
 * changes: the next round would have even more. Why there are no keys, in a sentence.
 */
async function readKeysIfPossible(
  ...[round, since, changed, limit]: Parameters<typeof readKeys>
): Promise<Awaited<ReturnType<typeof readKeys>> | string> {
  await round.client.query("SAVEPOINT keys");
  try {
    return await readKeys(round, since, changed, limit);
  } catch (error) {
    const why = whyNoKeys(sqlState(error) ?? "");
    if (why === undefined) throw error;
    await round.client.query("ROLLBACK TO SAVEPOINT keys");
    return why;
  }
}

function whyNoKeys(state: string): string | undefined {
  if (DATA_EXCEPTION.test(state)) return "A key could not be computed from a changed row that the query leaves out.";
  if (state === STATEMENT_TIMEOUT) return "Finding the keys of the changes took too long.";
  return undefined;
}

async function readKeys(
  { client, request }: OpenedRound,
  since: Extract<FoundChanges, { kind: "found" }>,
  changed: readonly FollowedTable[],
  limit: number,
): Promise<Pick<KeysOfRound, "keys" | "mayLackKeys">> {
  const { images, values } = since.images();
  const statements = changed.flatMap(({ change }) => (change.kind === "keys" ? [change.statement(images)] : []));
  const names = request.key.map((_, index) => `k${index + 1}`);
  const all = statements.map((statement) => `SELECT * FROM (\n${statement}\n) AS m (${names.join(", ")})`);
  // As its type prints it, which is what COPY gives for the rows: a cast makes `true` of t, and cuts the blanks of a char(3).
  const texts = names.map((name) => `k.${name}`).join(", ");
  const nulls = `num_nulls(${names.map((name) => `k.${name}`).join(", ")})`;
  // UNION, because what is one value may have several texts.
  const { rows } = await extended(
    client,
    `WITH k AS MATERIALIZED (${all.join("\nUNION\n")})
     (SELECT ${texts} FROM k WHERE ${nulls} = 0 LIMIT ${limit}) UNION ALL (SELECT ${texts} FROM k WHERE ${nulls} > 0 LIMIT 1)`,
    values,
  );
  const found = rows as (string | null)[][];
  const keys = found.filter((key): key is string[] => !key.includes(null));
  return { keys, mayLackKeys: keys.length < found.length };
}

/** Without any restriction inside: only the whole query can tell. */
function rowsWithoutKey({ query, key }: FollowRequest): string {
  const names = key.map((name) => `q.${quoteIdentifier(name)}`);
  return `${asSubquery(query)} WHERE num_nulls(${names.join(", ")}) > 0`;
}

/** `rows` are to be called q. */
async function openRows({ client, config, request }: OpenedRound, rows: string): Promise<SourceReader["read"]> {
  const names = request.columns.map(({ name }) => `q.${quoteIdentifier(name)}`).join(", ");
  const select = `SELECT ${names} FROM ${rows}`;
  // COPY goes by the simple protocol, which takes several statements: the text must first prove to be just one.
  await extended(client, `${select} LIMIT 0`);
  await client.query("SET LOCAL statement_timeout = 0");
  return copyRows(client, select, config);
}
