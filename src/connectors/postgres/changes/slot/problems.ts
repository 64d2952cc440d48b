import { quoteIdentifier, quoteTable } from "../../../../postgres/identifiers.ts";
import type { Fingerprint } from "../fingerprint.ts";
import { byRelation } from "../fingerprint.ts";
import { type RecordedTable, recordedName } from "../recorder.ts";
import { different, missing, partKindProblems, type RecordingProblem } from "../recording-problems.ts";
import type { PublishedPart, SlotRecording } from "./facts.ts";

/** Why a slot does not tell of every change of a table, or not all that a pipeline needs to know of it. */
export function slotProblems(
  facts: SlotRecording,
  slot: string,
  tables: readonly RecordedTable[],
): readonly RecordingProblem[] {
  const ofSource = sourceProblem(facts, slot);
  // It says why nothing can be recorded; what is missing besides is told once that is settled.
  if (ofSource !== undefined) {
    return tables.flatMap((table) => [
      { ...ofSource, relation: recordedName(table) },
      ...facts.published.flatMap((part) => (part.relation === recordedName(table) ? unindexed(part, table) : [])),
    ]);
  }
  return tables.flatMap((table) => {
    const relation = recordedName(table);
    const parts = facts.parts.filter((part) => part.relation === relation);
    const published = facts.published.filter((part) => part.relation === relation);
    const unusable = parts.flatMap((part) => partKindProblems(part));
    if (parts.length === 0) return [missing(relation, `There is no table ${relation}.`)];
    if (unusable.length > 0) return unusable;
    return [
      ...(published.length > 1 && facts.publication?.isViaRoot === true
        ? [different(relation, viaRoot(relation, slot))]
        : []),
      ...columnProblems(facts, table),
      ...published.flatMap((part) => [
        ...partProblems(part, slot, table),
        ...unindexed(part, table),
        ...leftOut(facts, part, slot),
      ]),
    ];
  });
}

const viaRoot = (relation: string, slot: string): string =>
  `The publication ${slot} tells of changes in partitions of ${relation} as changes of the whole table, so that it is not known which old values they have. Run: ALTER PUBLICATION ${quoteIdentifier(slot)} SET (publish_via_partition_root = false);`;

function sourceProblem({ slot: found, publication, server }: SlotRecording, slot: string) {
  const source = (problem: RecordingProblem["problem"], message: string) => ({ problem, message });
  if (server?.isStandby !== false) {
    return source("different", "The source is a standby, where a slot cannot be followed. Follow its primary.");
  }
  if (server.walLevel !== "logical") {
    const remedy = "Set wal_level = logical and restart it.";
    return source(
      "missing",
      `The source's server has wal_level = ${server.walLevel}, so no slot can tell of changes. ${remedy}`,
    );
  }
  if (!server.mayReplicate) {
    return source("missing", `The role ${server.reader} may not read a slot: it lacks REPLICATION.`);
  }
  if (publication === undefined) return source("missing", `There is no publication ${slot}.`);
  if (!publication.publishesAll) {
    return source("different", `The publication ${slot} does not publish all of insert, update, delete and truncate.`);
  }
  if (found === undefined) return source("missing", `There is no replication slot ${slot}.`);
  if (found.type !== "logical" || found.plugin !== "pgoutput") {
    return source("different", `The replication slot ${slot} is not a logical one with the plugin pgoutput.`);
  }
  if (found.database !== server.database) {
    return source("different", `The replication slot ${slot} belongs to the database ${found.database}.`);
  }
  if (found.lost !== null) {
    const why = `it was given up by the server (${found.lost})`;
    return source("different", `The replication slot ${slot} is lost: ${why}. It has to be dropped and recreated.`);
  }
  return undefined;
}

/** What a slot never carries. */
function columnProblems({ published, publication }: SlotRecording, table: RecordedTable): readonly RecordingProblem[] {
  const relation = recordedName(table);
  const ofTable = published.filter((part) => part.relation === relation);
  const needed = table.imageColumns.map(({ name }) => name);
  const virtual = needed.filter((name) => ofTable.some((part) => part.virtual.includes(name)));
  const stored = needed.filter((name) => ofTable.some((part) => part.stored.includes(name)));
  const why =
    publication?.generated === null
      ? "which no slot tells before PostgreSQL 18: write in the query what it is made of, or follow the source by triggers."
      : "and the publication leaves generated columns out.";
  return [
    ...virtual.map((name) =>
      different(relation, `${relation}.${name} is a virtual generated column, which no slot tells: store it.`),
    ),
    ...(publication?.generated === "s"
      ? []
      : stored.map((name) => different(relation, `${relation}.${name} is generated, ${why}`))),
  ];
}

/** With FULL, which is what the script would set otherwise, nothing of such a table could be written. */
function unindexed(part: PublishedPart, table: RecordedTable): readonly RecordingProblem[] {
  const { relation, name, virtual, identity, membership, uniqueKeys } = part;
  const needed = table.imageColumns.map((column) => column.name);
  const hasIndex = uniqueKeys.some((key) => needed.every((column) => key.includes(column)));
  const isStuck = membership !== null && identity === "f";
  const willBeStuck = membership === null && !hasIndex;
  if (part.kind === "p" || virtual.length === 0 || !(isStuck || willBeStuck)) return [];
  const why = `PostgreSQL ${isStuck ? "refuses" : "would refuse"} each UPDATE and DELETE of ${name}`;
  const full = `no publication can have the virtual generated column ${virtual.join(", ")}, which REPLICA IDENTITY FULL needs`;
  const remedy = hasIndex ? "Run the script again: it takes a unique index instead." : remedyFor(part, needed);
  return [different(relation, `${why}: ${full}. ${remedy}`)];
}

/** What an identity has and the publication has not lets no row be updated or deleted. */
function leftOut({ publication }: SlotRecording, part: PublishedPart, slot: string): readonly RecordingProblem[] {
  const { relation, name, stored, identity, identityColumns } = part;
  const columns = stored.filter((column) => identity === "f" || identityColumns.includes(column));
  if (part.kind === "p" || part.membership === null || publication?.generated !== "n" || columns.length === 0)
    return [];
  const why = `PostgreSQL refuses each UPDATE and DELETE of ${name}: its replica identity has the generated column ${columns.join(", ")}, which the publication leaves out`;
  return [
    different(
      relation,
      `${why}. Run: ALTER PUBLICATION ${quoteIdentifier(slot)} SET (publish_generated_columns = stored);`,
    ),
  ];
}

function partProblems(part: PublishedPart, slot: string, table: RecordedTable): readonly RecordingProblem[] {
  const { relation, name } = part;
  // Its partitions have the rows.
  if (part.kind === "p") {
    const isRisky = part.membership !== null && part.primaryKey.length === 0;
    return isRisky ? [different(relation, withoutKey(name, slot))] : [];
  }
  if (part.membership === null) return [missing(relation, `${name} is not in the publication ${slot}.`)];
  if (part.hasRowFilter) return [different(relation, `The publication ${slot} has only some rows of ${name}.`)];
  const needed = table.imageColumns.map((column) => column.name);
  const unpublished = needed.filter((column) => part.publishedColumns?.includes(column) === false);
  if (unpublished.length > 0) {
    return [different(relation, `The publication ${slot} has ${name} without ${unpublished.join(", ")}.`)];
  }
  const unknown = needed.filter((column) => part.identity !== "f" && !part.identityColumns.includes(column));
  const hasIdentity = part.identity === "f" || part.identityIndex !== null;
  if (!hasIdentity) {
    const why = "its rows cannot be updated or deleted while it is published";
    return [different(relation, `${name} has no replica identity: ${why}. ${remedyFor(part, needed)}`)];
  }
  if (unknown.length === 0) return [];
  const lost = `when a row gets another ${unknown.join(" or ")}, the old one is unknown`;
  return [
    different(
      relation,
      `The replica identity of ${name} lacks ${unknown.join(", ")}: ${lost}. ${remedyFor(part, needed)}`,
    ),
  ];
}

const withoutKey = (name: string, slot: string): string =>
  `The publication ${slot} has all of ${name}, which has no primary key: its next partition would have no replica identity, and then no row of ${name} could be updated or deleted. Run the script again: it publishes the partitions that there are.`;

/** For the owner of the table. */
function remedyFor({ name, primaryKey, virtual }: PublishedPart, needed: readonly string[]): string {
  const table = quoteName(name);
  const columns = [...new Set([...primaryKey, ...needed])].map(quoteIdentifier).join(", ");
  if (virtual.length > 0) {
    return `Run: CREATE UNIQUE INDEX … ON ${table} (${columns}); ALTER TABLE ${table} REPLICA IDENTITY USING INDEX …; The columns of the index have to be NOT NULL. Where one cannot be, store ${virtual.join(", ")}, or follow the source by triggers.`;
  }
  const byIndex =
    primaryKey.length === 0
      ? ""
      : ` Or, which is cheaper, if these columns are NOT NULL: CREATE UNIQUE INDEX … ON ${table} (${columns}); ALTER TABLE ${table} REPLICA IDENTITY USING INDEX …;`;
  return `Run: ALTER TABLE ${table} REPLICA IDENTITY FULL;${byIndex}`;
}

/** With more than one dot it is not known where the schema ends. */
function quoteName(name: string): string {
  const [schema = "", table = "", ...more] = name.split(".");
  return more.length > 0 ? name : quoteTable({ schema, table });
}

/** What a position relies on beside its tables. */
export function slotPrints({ publication, published }: SlotRecording, slot: string): Fingerprint {
  const prints: Record<string, string> = {
    slot,
    publication: publication === undefined ? "none" : `${publication.oid} ${publication.xmin}`,
  };
  for (const [relation, parts] of byRelation(published)) {
    prints[`published ${relation}`] = parts.map(({ oid, membership }) => `${oid} ${membership}`).join(", ");
    prints[`identity of ${relation}`] = parts
      .map(({ oid, identity, identityIndex }) => [oid, identity, identityIndex].join(" "))
      .join(", ");
  }
  return prints;
}

/** What a person should know, although every change is told. */
export function slotRemarks({ server }: SlotRecording, slot: string): readonly string[] {
  if (server?.mostKept !== "-1") return [];
  return [
    `max_slot_wal_keep_size of the source is -1: while nobody reads the slot ${slot}, its server keeps WAL until the disk is full. Set a limit.`,
  ];
}
