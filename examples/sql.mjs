// Queries the database that `npm start` runs and prints the answer, for readers who have Node.js but no psql.
//
//   node examples/sql.mjs "SELECT title, rating FROM content.film_work LIMIT 3"
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import pg from "pg";

const vitrina = fileURLToPath(new URL("../bin/vitrina.mjs", import.meta.url));
const url = execFileSync(process.execPath, [vitrina, "db-url"], { encoding: "utf8" }).trim();
const database = new pg.Client({ connectionString: url });
await database.connect();
try {
  const { command, rowCount, rows } = await database.query(process.argv[2]);
  if (rows.length > 0) console.table(rows);
  else console.log(command, rowCount);
} finally {
  await database.end();
}
