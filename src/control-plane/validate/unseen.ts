import type { SourceInspector } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { isNumberType } from "../../domain/watermark.ts";
import type { CheckedQuery, Validator } from "./validator.ts";

/** The changes that an incremental load does not notice: they are no fault of the configuration, but must be known. */
export async function checkUnseen(
  { config, findings }: Validator,
  source: SourceInspector,
  { text }: CheckedQuery,
): Promise<string[] | null> {
  const { mode, incremental_key: key } = config;
  if (mode !== "incremental" || key === null) return null;
  const check = { pointer: "/incremental_key", question: "which changes are not seen" };
  const unseen = await findings.attempt(check, () => source.unseenTables(text, key));
  if (unseen === undefined) return null;
  if (unseen.length > 0) {
    const message = `Changes of ${unseen.join(", ")} do not move "${key}", so no run notices them.`;
    findings.add(new VitrinaError("CHANGES_UNSEEN", message), check.pointer, "warning");
  }
  return [...unseen];
}

export function notesOf({ config }: Validator, query: CheckedQuery | undefined): string[] {
  const { mode, incremental_key: key, lookback_numbers } = config;
  if (mode !== "incremental") return [];
  const type = query?.columns.find(({ name }) => name === key)?.type;
  const ahead = `If programs give out blocks of "${key}" ahead by themselves, set lookback_numbers to more than are given out while one of them is kept back.`;
  return [
    "Rows that are deleted in the source stay in the target; a full load removes them, and reconcile shows them.",
    `A row that changes while its "${key}" stays as it is keeps its old values in the target.`,
    ...(type !== undefined && isNumberType(type) && lookback_numbers === 0 ? [ahead] : []),
  ];
}
