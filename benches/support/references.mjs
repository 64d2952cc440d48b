// What Vitrina is compared with: the same work written by hand, without lease, checkpoint, counters or resumption.
import { pipeline } from "node:stream/promises";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import { COLUMNS, createTarget, QUERY } from "./source-data.mjs";

const NAMES = COLUMNS.join(", ");
const ASSIGNMENTS = COLUMNS.filter((name) => name !== "id").map((name) => `${name} = excluded.${name}`);

const upsert = (target, select) =>
  `INSERT INTO ${target} (${NAMES}) ${select} ON CONFLICT (id) DO UPDATE SET ${ASSIGNMENTS.join(", ")}`;

/** Everything by one statement. */
export async function singleStatement(client, target) {
  await createTarget(client, target);
  await client.query(upsert(target, QUERY));
}

/** Only what changed after a given moment, by one statement. */
export async function changesByOneStatement(client, target, after) {
  await client.query(upsert(target, `${QUERY} WHERE modified > '${after}'::timestamptz`));
}

/** From one database to another, batch by batch: COPY binary → COPY into a stage → merge. */
export async function copyLoop(source, target, table, batchSize) {
  await createTarget(target, table);
  await target.query(`CREATE TEMP TABLE IF NOT EXISTS stage (LIKE ${table})`);
  const merge = upsert(table, `SELECT ${NAMES} FROM stage`);
  let condition = "";
  for (;;) {
    const select = `${QUERY} ${condition} ORDER BY modified, id LIMIT ${batchSize}`;
    const rows = source.query(copyTo(`COPY (${select}) TO STDOUT (FORMAT binary)`));
    await target.query("BEGIN");
    await pipeline(rows, target.query(copyFrom("COPY stage FROM STDIN (FORMAT binary)")));
    const { rowCount } = await target.query(merge);
    const last = await target.query("SELECT modified::text, id FROM stage ORDER BY modified DESC, id DESC LIMIT 1");
    await target.query("TRUNCATE stage; COMMIT");
    if (rowCount < batchSize) return;
    const { modified, id } = last.rows[0];
    condition = `WHERE (modified, id) > ('${modified}'::timestamptz, ${id})`;
  }
}

/** Single rows between two sessions that are open: COPY → COPY into a stage → upsert by the key `id`. */
export async function rowsByHand(source, target, table, select) {
  const { fields } = await target.query(`SELECT * FROM ${table} LIMIT 0`);
  const names = fields.map(({ name }) => name);
  const others = names.filter((name) => name !== "id").map((name) => `${name} = excluded.${name}`);
  await target.query(`CREATE TEMP TABLE IF NOT EXISTS single_rows (LIKE ${table})`);
  await target.query("BEGIN");
  const rows = source.query(copyTo(`COPY (${select}) TO STDOUT`));
  await pipeline(rows, target.query(copyFrom("COPY single_rows FROM STDIN")));
  await target.query(`INSERT INTO ${table} SELECT * FROM single_rows
    ON CONFLICT (id) DO UPDATE SET ${others.join(", ")}`);
  await target.query("TRUNCATE single_rows; COMMIT");
}
