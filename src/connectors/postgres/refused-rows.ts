import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Row } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { loadError } from "../../postgres/errors.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { batchOfRows, type RowBatch } from "../row-batch.ts";

/**
 * Finds the rows of a batch that the target refuses, and why, with a handful of statements however many they are. The
 * rows lie on the server as texts; there a block tries them range by range, and divides a range that fails, down to
 * the single row, whose own error is kept. This finds whatever refuses a row: types, constraints, triggers.
 */

export interface Trial {
  /** A table whose row type has the columns below, in this order. */
  readonly rowType: string;
  readonly columns: readonly string[];
  /** Those that a batch brings; the others are null. */
  readonly given: readonly string[];
  /** Puts rows where they are going to be written, in PL/pgSQL without the last semicolon. `relation` has the columns, and a `ctid` that grows in their order. */
  statement(relation: string): string;
}

interface RefusedAt {
  readonly index: number;
  readonly error: VitrinaError;
}

const TEXTS = "pg_temp.vitrina_texts";
const REFUSED = "pg_temp.vitrina_refused";

/** In the class of data exceptions, but not one of PostgreSQL's: our own refusal, with a whole sentence as message. */
export const VALUE_REFUSED = "22V01";

/** The most rows that one statement tries: it must end within its time limit. */
const MOST_ROWS_PER_STATEMENT = 10_000;
/** Into how many parts a range with a refused row is divided. */
const PARTS_OF_RANGE = 16;

/** Numbered names: the same table serves trials of other columns, as long as there are not more of them. */
const textOf = (index: number): string => `t${index}`;

export async function createTrialTables(client: Client, { columns }: Pick<Trial, "columns">): Promise<void> {
  const texts = columns.map((_, index) => `${textOf(index)} text`).join(", ");
  await client.query(`
    CREATE TEMP TABLE IF NOT EXISTS vitrina_texts (${texts}, place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
    CREATE TEMP TABLE IF NOT EXISTS vitrina_refused (place bigint, state text, message text, context text, named text[])`);
}

/** Runs inside a transaction of the caller, and leaves nothing behind. */
export async function findRefusedRows(
  client: Client,
  what: string,
  trial: Trial,
  batch: RowBatch,
): Promise<RefusedAt[]> {
  if (batch.count === 0) return [];
  // What a constraint would say only at the commit must be said here, and of which row. Undone with the savepoint.
  await client.query("SAVEPOINT trial; SET CONSTRAINTS ALL IMMEDIATE");
  const refused = await tryBatch(client, what, trial, batch).catch((error: unknown) => {
    const failure = loadError(error, what);
    if (failure.retry !== "row") throw failure;
    return failure;
  });
  await client.query("ROLLBACK TO SAVEPOINT trial");
  if (Array.isArray(refused)) return refused;
  return findInHalves(client, what, trial, batch.rows(), refused);
}

/** A text that the server's encoding cannot represent cannot even be stored there. */
async function findInHalves(
  client: Client,
  what: string,
  trial: Trial,
  rows: readonly Row[],
  error: VitrinaError,
): Promise<RefusedAt[]> {
  if (rows.length === 1) return [{ index: 0, error }];
  const middle = Math.ceil(rows.length / 2);
  const first = await findRefusedRows(client, what, trial, batchOfRows(rows.slice(0, middle)));
  const second = await findRefusedRows(client, what, trial, batchOfRows(rows.slice(middle)));
  return [...first, ...second.map((row) => ({ ...row, index: row.index + middle }))];
}

async function tryBatch(client: Client, what: string, trial: Trial, batch: RowBatch): Promise<RefusedAt[]> {
  const names = trial.given.map((name) => textOf(trial.columns.indexOf(name))).join(", ");
  const stream = client.query(copyFrom(`COPY ${TEXTS} (${names}) FROM STDIN`));
  await pipeline(Readable.from(batch.copyText(), { objectMode: false }), stream);
  const { rows: bounds } = await client.query<{ first: string }>(`SELECT min(place) AS first FROM ${TEXTS}`);
  const first = Number(bounds[0]?.first);
  for (let done = 0; done < batch.count; done += MOST_ROWS_PER_STATEMENT) {
    const end = Math.min(done + MOST_ROWS_PER_STATEMENT, batch.count);
    await client.query(tryRange(trial, first + done, first + end));
  }
  const { rows } = await client.query<Record<"place" | "state" | "message" | "context" | "named", string>>(
    `SELECT place, state, message, context, to_json(named) AS named FROM ${REFUSED} ORDER BY place`,
  );
  return rows.map(({ place, state, message, context, named }) => {
    const [table, column, dataType, constraint] = (JSON.parse(named) as string[]).map((name) => name || undefined);
    const fields = { code: state, where: context, table, column, dataType, constraint };
    const error =
      state === VALUE_REFUSED
        ? new VitrinaError("ROW_REFUSED", message)
        : loadError(Object.assign(new Error(message), fields), what);
    return { index: Number(place) - first, error };
  });
}

/** The rows of a range with the types of the target. Input functions read each text, as COPY would. */
function typedRows({ rowType, columns }: Trial): string {
  const texts = columns.map((_, index) => `t.${textOf(index)}`).join(", ");
  return `(SELECT x.ctid, (x.typed).*
     FROM (SELECT t.ctid, ROW(${texts})::text::${rowType} AS typed FROM ${TEXTS} AS t
            WHERE t.place >= _vitrina_from AND t.place < _vitrina_to ORDER BY t.place OFFSET 0) AS x)`;
}

/** What a part has written stays until all are tried, so that a row can also conflict with earlier ones. */
function tryRange(trial: Trial, from: number, to: number): string {
  return `DO ${quoteLiteral(`
    #variable_conflict use_column
    DECLARE
      _vitrina_starts bigint[] := ARRAY[${from}];
      _vitrina_ends bigint[] := ARRAY[${to}];
      _vitrina_left int;
      _vitrina_from bigint;
      _vitrina_to bigint;
      _vitrina_step bigint;
      _vitrina_start bigint;
      _vitrina_state text;
      _vitrina_message text;
      _vitrina_context text;
      _vitrina_table text;
      _vitrina_column text;
      _vitrina_type text;
      _vitrina_constraint text;
    BEGIN
      LOOP
        _vitrina_left := cardinality(_vitrina_starts);
        EXIT WHEN _vitrina_left = 0;
        _vitrina_from := _vitrina_starts[_vitrina_left];
        _vitrina_to := _vitrina_ends[_vitrina_left];
        _vitrina_starts := _vitrina_starts[:_vitrina_left - 1];
        _vitrina_ends := _vitrina_ends[:_vitrina_left - 1];
        BEGIN
          ${trial.statement(typedRows(trial))};
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR raise_exception OR program_limit_exceeded THEN
          IF _vitrina_to - _vitrina_from = 1 THEN
            GET STACKED DIAGNOSTICS _vitrina_state = RETURNED_SQLSTATE, _vitrina_message = MESSAGE_TEXT,
              _vitrina_context = PG_EXCEPTION_CONTEXT, _vitrina_table = TABLE_NAME, _vitrina_column = COLUMN_NAME,
              _vitrina_type = PG_DATATYPE_NAME, _vitrina_constraint = CONSTRAINT_NAME;
            INSERT INTO ${REFUSED} VALUES (_vitrina_from, _vitrina_state, _vitrina_message, _vitrina_context,
              ARRAY[_vitrina_table, _vitrina_column, _vitrina_type, _vitrina_constraint]);
          ELSE
            _vitrina_step := (_vitrina_to - _vitrina_from + ${PARTS_OF_RANGE - 1}) / ${PARTS_OF_RANGE};
            FOR _vitrina_part IN REVERSE ${PARTS_OF_RANGE - 1} .. 0 LOOP
              _vitrina_start := _vitrina_from + _vitrina_part * _vitrina_step;
              CONTINUE WHEN _vitrina_start >= _vitrina_to;
              _vitrina_starts := _vitrina_starts || _vitrina_start;
              _vitrina_ends := _vitrina_ends || least(_vitrina_start + _vitrina_step, _vitrina_to);
            END LOOP;
          END IF;
        END;
      END LOOP;
    END`)}`;
}
