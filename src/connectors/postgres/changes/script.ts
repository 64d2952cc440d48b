import { quoteIdentifier, quoteLiteral, quoteTable } from "../../../postgres/identifiers.ts";
import { BASE, FORGETTING, grants, limits, STORING } from "./base-script.ts";
import {
  CHANGES_OWNER,
  inOrder,
  type RecordedTable,
  recordedName,
  recorderBody,
  recorderName,
  recorderSettings,
  rowTriggerName,
  truncateTriggerName,
} from "./recorder.ts";
import { ATTACHING, DETACHING, REMOVAL } from "./trigger-script.ts";

/** The script that the owner of a source runs so that changes are recorded, and the one that takes all of it away. */

export interface ChangesScript {
  readonly tables: readonly RecordedTable[];
  /** The role that reads the source. */
  readonly reader: string;
  /** Above it the oldest changes are forgotten, and at last no more are stored. */
  readonly maxRows?: number;
  readonly maxAgeHours?: number;
}

/** Held while the recording of a source is changed. */
export const INSTALLING_LOCK = 7_116_505;

/** About half a gigabyte; a quarter of it is kept in any case, which is as much as a round takes at most by default. */
const MAX_ROWS = 4_000_000;
const MAX_AGE_HOURS = 7 * 24;

/** Can be run again: what is as it should be is left alone. Each table has a transaction of its own, so that none waits for another. */
export function changesScript({
  tables,
  reader,
  maxRows = MAX_ROWS,
  maxAgeHours = MAX_AGE_HOURS,
}: ChangesScript): string {
  const inner = [BASE, limits(maxRows, maxAgeHours), STORING, FORGETTING, grants(quoteIdentifier(reader))];
  return [
    HEADER,
    transaction(inner.map((part) => part.trim()).join("\n\n")),
    ATTACHING.trim(),
    ...tables.map((table) => tableScript(inOrder(table))),
    "",
  ].join("\n\n");
}

/** Takes away all triggers and the schema. Can be run again. */
export function removalScript(): string {
  return `-- Takes away what Vitrina needs to follow changes. Marts that follow can then no longer be loaded.
-- The role ${CHANGES_OWNER} stays: other databases of this server may use it. DROP ROLE ${CHANGES_OWNER} removes it.
${transaction(REMOVAL.trim())}
`;
}

/** Takes single tables out, by the names under which they are recorded. Can be run again. Each has a transaction of its own. */
export function detachingScript(relations: readonly string[]): string {
  const one = (relation: string): string =>
    transaction(`-- ${commented(relation)}\nSELECT pg_temp.vitrina_detach(${quoteLiteral(relation).trim()});`);
  return `${[DETACHING_HEADER, DETACHING.trim(), ...relations.map(one)].join("\n\n")}\n`;
}

const DETACHING_HEADER = `-- Takes out of the recording what no saved pipeline of this connection follows any more. It waits up to five seconds for
-- whoever is using such a table. Leave this part away if another connection, or another Vitrina, follows one of them.`;

const HEADER = `-- Lets Vitrina follow the changes of this database. Run it as the owner of the tables, by psql or any other client.
-- It can be run again at any time, and changes only what is not yet as it should be. It takes no table out: what does is
-- printed with --diff, for those that no pipeline follows any more. All of it is in the schema vitrina,
-- except for two triggers on each table. The change table holds the columns named below, and never whole rows.`;

export function transaction(inner: string): string {
  // Nobody else's functions: the script may be run by a superuser whose search path has a schema of somebody else.
  // A write of the application that waits behind us waits no longer than this.
  // The other lock is for two people who run the script at once.
  return `BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL lock_timeout = '5s';
SET LOCAL client_min_messages = warning;
SELECT pg_catalog.pg_advisory_xact_lock(${INSTALLING_LOCK});
${inner}
COMMIT;`;
}

function tableScript(table: RecordedTable): string {
  const recorder = recorderName(table);
  const relation = quoteLiteral(recordedName(table)).trim();
  const [schema, name] = [table.schema, table.name].map((part) => quoteLiteral(part).trim());
  const body = recorderBody(table);
  const columns = JSON.stringify({ image: table.imageColumns, read: table.readColumns });
  const quotedColumns = quoteLiteral(columns).trim();
  const quote = dollarQuote(body);
  const settings = recorderSettings(table).map((setting) => `SET ${setting}`);
  return transaction(`-- ${commented(quoteTable({ schema: table.schema, table: table.name }))}
SELECT pg_temp.vitrina_before(${relation}, ${quotedColumns});
SET LOCAL ROLE ${CHANGES_OWNER};
INSERT INTO vitrina.tables (relation, schema, name, recorder, columns, body_md5)
VALUES (${relation}, ${schema}, ${name}, '${recorder}', ${quotedColumns}, md5(${quote}${body}${quote}))
ON CONFLICT (relation) DO UPDATE SET columns = excluded.columns, body_md5 = excluded.body_md5;
CREATE OR REPLACE FUNCTION vitrina.${recorder}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER ${settings.join(" ")} AS ${quote}${body}${quote};
REVOKE ALL ON FUNCTION vitrina.${recorder}() FROM PUBLIC;
RESET ROLE;
SELECT pg_temp.vitrina_attach(${relation}, ${schema}, ${name}, '${recorder}', '${rowTriggerName(table)}', '${truncateTriggerName(table)}');`);
}

/** A name may contain a line break, which would end the comment. */
const commented = (text: string): string => text.replaceAll(/[\r\n]/g, " ");

export function dollarQuote(body: string): string {
  for (let tag = "function"; ; tag += "_") if (!body.includes(`$${tag}$`)) return `$${tag}$`;
}
