import { CHANGES_VERSION, type RecordedTable, recordedName, recorderBody, recorderSettings } from "./recorder.ts";
import type { InstalledTable, RecordingFacts, TablePart } from "./recording.ts";

/** Why changes of a table are not recorded, or not as a pipeline needs them. */

export interface RecordingProblem {
  /** `schema.table` */
  readonly relation: string;
  readonly problem: "missing" | "different";
  /** A sentence. */
  readonly message: string;
}

export function recordingProblems(facts: RecordingFacts, tables: readonly RecordedTable[]): RecordingProblem[] {
  if (facts.changes.version !== CHANGES_VERSION) {
    return tables.map((table) =>
      different(recordedName(table), "The change table was installed by another release of Vitrina."),
    );
  }
  return tables.flatMap((table) => {
    const relation = recordedName(table);
    const parts = facts.parts.filter((part) => part.relation === relation);
    const installed = facts.installed.find((one) => one.relation === relation);
    return [
      ...parts.flatMap((part) => partProblems(part)),
      ...(installed === undefined
        ? [missing(relation, `Changes of ${relation} are not recorded.`)]
        : columnProblems(table, installed)),
      ...facts.columns
        .filter((column) => column.relation === relation && column.isVirtual)
        .map(({ name }) =>
          different(
            relation,
            `${relation}.${name} is a virtual generated column, which triggers do not see: store it.`,
          ),
        ),
    ];
  });
}

/** What cannot be followed, whoever records its changes. */
export function partKindProblems(part: TablePart): RecordingProblem[] {
  const { relation, name } = part;
  if (part.kind === "f") return [different(relation, `${name} is a foreign table: its changes happen elsewhere.`)];
  if (part.kind !== "r" && part.kind !== "p") return [different(relation, `${name} is not a table.`)];
  if (part.isUnlogged) return [different(relation, `${name} is unlogged: a crash of the server empties it silently.`)];
  return [];
}

/** Of its trigger. */
export function partProblems(part: TablePart): RecordingProblem[] {
  const { relation, name, rowTrigger } = part;
  const ofKind = partKindProblems(part);
  if (ofKind.length > 0) return ofKind;
  if (rowTrigger === null) return [missing(relation, `${name} has no trigger that records its changes.`)];
  if (!rowTrigger.isOurs) return [different(relation, `The trigger of ${name} is not the one that records changes.`)];
  if (rowTrigger.enabled !== "A") {
    return [different(relation, `The trigger of ${name} is switched off, or not switched on for replicated changes.`)];
  }
  return [];
}

function columnProblems(table: RecordedTable, installed: InstalledTable): RecordingProblem[] {
  const { relation, columns, body, gone, presentImage } = installed;
  const own = { ...table, imageColumns: columns.image, readColumns: columns.read };
  if (body !== recorderBody(own)) {
    return [different(relation, `The function that records changes of ${relation} is not the one that was installed.`)];
  }
  if (gone.length > 0) {
    return [
      different(relation, `Changes of ${relation} are recorded with ${gone.join(", ")}, which it no longer has.`),
    ];
  }
  // Values of some types are printed by the settings of the session, unless the function makes its own.
  if (recorderSettings({ imageColumns: presentImage }).length > recorderSettings(own).length) {
    return [different(relation, `Changes of ${relation} are recorded for columns that have another type by now.`)];
  }
  const typeOf = new Map(columns.image.map(({ name, type }) => [name, type]));
  const images = table.imageColumns.filter(({ name }) => !typeOf.has(name)).map(({ name }) => name);
  const read = table.readColumns.filter((name) => !columns.read.includes(name));
  const lacking = [...new Set([...images, ...read])];
  return lacking.length === 0
    ? []
    : [missing(relation, `Changes of ${relation} are recorded without ${lacking.join(", ")}.`)];
}

export const missing = (relation: string, message: string): RecordingProblem => ({
  relation,
  problem: "missing",
  message,
});
export const different = (relation: string, message: string): RecordingProblem => ({
  relation,
  problem: "different",
  message,
});
