/** What `work` makes the server log: for one table with its indexes, and for everything else. In bytes. */
export async function walOfTable({ admin }, table, work) {
  await admin.query("CREATE EXTENSION IF NOT EXISTS pg_walinspect");
  await admin.query("CHECKPOINT");
  const from = await position(admin);
  const result = await work();
  const to = await position(admin);
  const { rows } = await admin.query(
    `SELECT pg_wal_lsn_diff($2::pg_lsn, $1::pg_lsn) AS total, coalesce((
       SELECT sum(b.block_data_length + b.block_fpi_length)
         FROM pg_get_wal_block_info($1::pg_lsn, $2::pg_lsn, false) b
        WHERE b.relfilenode IN (
          SELECT pg_relation_filenode(c.oid) FROM pg_class c
           WHERE c.oid = $3::regclass OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = $3::regclass))
     ), 0) AS of_table`,
    [from, to, table],
  );
  const walOfTarget = Number(rows[0].of_table);
  return { result, walOfTarget, wal: Number(rows[0].total) - walOfTarget };
}

async function position(admin) {
  return (await admin.query("SELECT pg_current_wal_flush_lsn() AS lsn")).rows[0].lsn;
}
