import type { Fields } from "../sql-guard/tree.ts";
import type { SourceText } from "./model.ts";

export interface ParsedText {
  readonly select: Fields;
  readonly source: SourceText;
}
