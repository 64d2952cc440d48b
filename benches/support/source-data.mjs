// The rows that every bench moves: a mart of eight columns of the types that real ones have.

export const COLUMNS = ["id", "code", "name", "price", "votes", "active", "tags", "modified"];
export const QUERY = `SELECT ${COLUMNS.join(", ")} FROM content.title`;
/** The source for measuring whether the cost per row grows with the table. */
export const LARGE_QUERY = `SELECT ${COLUMNS.join(", ")} FROM content.title_large`;

const DEFINITION = `(
  id bigint PRIMARY KEY, code uuid NOT NULL, name text NOT NULL, price numeric(10,2), votes integer NOT NULL,
  active boolean NOT NULL, tags text[] NOT NULL, modified timestamptz NOT NULL)`;

/** Rows as they were made, a tenth of them changed later; stamps with microseconds, all in the past. */
const ROWS = `
  SELECT n, md5(n::text)::uuid, 'Title ' || n || ' ' || md5((n * 7)::text),
         CASE WHEN n % 20 > 0 THEN (n % 100000)::numeric / 100 END, n % 977, n % 3 > 0,
         ARRAY['tag ' || n % 11, 'tag ' || n % 13],
         timestamptz '2020-01-01' + n * interval '7.123457 s'
           + CASE WHEN n % 10 = 0 THEN (n * 7919 % 300) * interval '1 day' ELSE interval '0' END`;

export async function createSource(client, rows) {
  await client.query("CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader");
  await client.query("ALTER DEFAULT PRIVILEGES IN SCHEMA content GRANT SELECT ON TABLES TO vitrina_reader");
  await fillTable(client, "content.title", rows);
}

export async function fillTable(client, table, rows) {
  await client.query(`CREATE TABLE ${table} ${DEFINITION}`);
  await client.query(`INSERT INTO ${table} ${ROWS} FROM generate_series(1, ${rows}::bigint) n`);
  await client.query(`CREATE INDEX ON ${table} (modified, id)`);
  await client.query(`VACUUM (ANALYZE) ${table}`);
}

/** Gives every hundredth row a new name and a timestamp after all others, as an application would. */
export async function changeOnePercent(client) {
  const { rowCount } = await client.query(
    `UPDATE content.title t SET name = 'Changed ' || md5(random()::text), modified = newest.at + t.id * interval '1 us'
       FROM (SELECT max(modified) AS at FROM content.title) newest WHERE t.id % 100 = 0`,
  );
  await client.query("VACUUM (ANALYZE) content.title");
  return rowCount;
}

export async function createTarget(client, table) {
  await client.query(`CREATE TABLE ${table} ${DEFINITION}`);
}
