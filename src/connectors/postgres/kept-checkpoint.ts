import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import type { Client } from "../../postgres/connection.ts";
import { databaseError, sqlState } from "../../postgres/errors.ts";
import { quoteTable } from "../../postgres/identifiers.ts";
import type { KeptCheckpoint, KeptPosition, SinkRequest } from "../sink.ts";

/**
 * The target is in another database than the meta-store, so the two cannot commit together. A checkpoint of its own,
 * beside the data, commits with the data; the meta-store gets a copy afterwards. Its epoch is also the fence: a runner
 * that takes the pipeline over first writes a higher epoch here, and from then on no other can commit. The same statement
 * gives up a position from before a person changed the state: afterwards its epoch could not be told any more.
 */
export async function openKeptCheckpoint(
  client: Client,
  schema: string,
  { claim: { pipelineId, epoch, decidedEpoch }, requireLease }: Pick<SinkRequest, "claim" | "requireLease">,
): Promise<KeptCheckpoint> {
  const table = quoteTable({ schema, table: "_vitrina_checkpoint" });
  await client
    .query(`CREATE TABLE IF NOT EXISTS ${table} (
    pipeline_id uuid PRIMARY KEY, epoch bigint NOT NULL, batch_no bigint NOT NULL DEFAULT 0,
    scan_position text[], fingerprint text, safe_point text, updated_at timestamptz NOT NULL DEFAULT clock_timestamp())`)
    .catch((error: unknown) => {
      // IF NOT EXISTS does not help if another session creates it at the same moment.
      if (!["23505", "42710", "42P07"].includes(sqlState(error) ?? "")) throw error;
    });
  const { rows } = await client.query(
    `INSERT INTO ${table} AS c (pipeline_id, epoch) VALUES ($1, $2)
     ON CONFLICT (pipeline_id) DO UPDATE
       SET epoch = excluded.epoch,
           scan_position = CASE WHEN c.epoch > $3 THEN c.scan_position END,
           fingerprint = CASE WHEN c.epoch > $3 THEN c.fingerprint END,
           safe_point = CASE WHEN c.epoch > $3 THEN c.safe_point END
     WHERE c.epoch <= excluded.epoch
     RETURNING batch_no, to_json(scan_position) AS scan_position, fingerprint, safe_point`,
    [pipelineId, epoch, decidedEpoch],
  );
  const [row] = rows;
  if (row === undefined) {
    await requireLease();
    throw new VitrinaError("TARGET_AHEAD", `The target was written under a later claim than this one (${epoch}).`);
  }

  const exactlyOne = async (session: SqlSession, statement: string, values: unknown[]): Promise<void> => {
    const { rowCount } = await session.query(statement, [pipelineId, epoch, ...values]);
    if (rowCount !== 1) throw lost(pipelineId, epoch);
  };

  const forgetIn = (session: SqlSession): Promise<void> =>
    exactlyOne(
      session,
      `UPDATE ${table} SET scan_position = NULL, fingerprint = NULL, safe_point = NULL
        WHERE pipeline_id = $1 AND epoch = $2`,
      [],
    );

  return {
    found: {
      batchNo: Number(row.batch_no),
      position: row.scan_position === null ? null : (JSON.parse(row.scan_position) as string[]),
      fingerprint: row.fingerprint,
      safePoint: row.safe_point,
    },
    fenceIn: (transaction) =>
      exactlyOne(transaction, `SELECT 1 FROM ${table} WHERE pipeline_id = $1 AND epoch = $2 FOR UPDATE`, []),
    recordIn: (transaction, { batchNo, position, fingerprint, safePoint }: KeptPosition) =>
      exactlyOne(
        transaction,
        `UPDATE ${table} SET batch_no = $3, scan_position = $4, fingerprint = $5, safe_point = $6,
                updated_at = clock_timestamp()
          WHERE pipeline_id = $1 AND epoch = $2 AND batch_no < $3`,
        [batchNo, position, fingerprint, safePoint],
      ),
    forgetIn,
    forget: () =>
      forgetIn(client).catch((error: unknown) => {
        throw databaseError(error, "delete the checkpoint beside the data");
      }),
  };
}

function lost(pipelineId: string, epoch: number): VitrinaError {
  return new VitrinaError("LEASE_LOST", `Another runner took the pipeline ${pipelineId} over (after epoch ${epoch}).`);
}
