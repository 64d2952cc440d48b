// What every tool is to do: a table of one database into another one. No arrays: not every tool copies them.

export const TABLE = "content.film";
export const COLUMNS = ["id", "code", "name", "price", "votes", "active", "modified"];
export const DEFINITION = `(id bigint PRIMARY KEY, code uuid NOT NULL, name text NOT NULL, price numeric(10,2),
  votes integer NOT NULL, active boolean NOT NULL, modified timestamptz NOT NULL)`;

export async function createTable(client, rows) {
  await client.query(`CREATE TABLE ${TABLE} ${DEFINITION}`);
  await client.query(
    `INSERT INTO ${TABLE}
     SELECT n, md5(n::text)::uuid, 'Film ' || n || ' ' || md5((n * 7)::text), CASE WHEN n % 20 > 0 THEN (n % 100000)::numeric / 100 END,
            n % 977, n % 3 > 0, timestamptz '2020-01-01' + n * interval '7.123457 s'
       FROM generate_series(1, $1::bigint) n`,
    [rows],
  );
  await client.query(`CREATE INDEX ON ${TABLE} (modified, id)`);
  await client.query(`VACUUM (ANALYZE) ${TABLE}`);
}

export async function changeOnePercent(client) {
  await client.query(
    `UPDATE ${TABLE} t SET votes = votes + 1, modified = newest.at + t.id * interval '1 us'
       FROM (SELECT max(modified) AS at FROM ${TABLE}) newest WHERE t.id % 100 = 0`,
  );
  await client.query(`VACUUM (ANALYZE) ${TABLE}`);
}

/** The same for equal rows in any order. */
export async function sumOf(client, table, name = "name") {
  const columns = COLUMNS.map((column) => (column === "name" ? name : column)).join(", ");
  const { rows } = await client.query(
    `SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) AS sum FROM (SELECT ${columns} FROM ${table}) t`,
  );
  return rows[0].sum;
}

/** Each is done by every tool that can, right after a checkpoint. `name`: what the target's column of that name is to hold. */
export const SCENARIOS = [
  { name: "first load", does: "a target that is not there yet" },
  { name: "second load", does: "the same again, nothing changed" },
  { name: "1 % changed", does: "only what is newer than the last load" },
  { name: "load through code", does: "one column changed by a function of the user's", expected: "upper(name)" },
];
