import type { Fields } from "../sql-guard/tree.ts";
import type { ExpressionPlace } from "./expressions.ts";
import type { ColumnUse, Expression, Partition, QueryBlock, SourceText, Sublink } from "./model.ts";
import type { CteScope, NameScope } from "./names.ts";
import type { ParsedText } from "./parsed-text.ts";
import type { QueryFacts, RelationFacts } from "./query-facts.ts";

/** Where a SELECT stands. */
export interface Surrounding {
  readonly scope: NameScope | undefined;
  readonly ctes: CteScope | undefined;
  readonly source: SourceText;
}

/** A SELECT while it is being read. */
export interface BlockDraft extends Surrounding {
  readonly scope: NameScope;
  readonly sublinks: Sublink[];
  readonly partitions: Partition[];
  readonly windows: ReadonlyMap<string, Fields>;
  /** What is being read, for sentences. */
  output: string;
  computedBy: string | undefined;
  isMisplaced: boolean;
  aggregateDepth: number;
  /** What is read is computed for a group, if there are groups. */
  isOfGroup: boolean;
  bare: ColumnUse[];
}

/** What the readers of parts of a SELECT need of the one that reads the whole query. */
export interface ReadingHost {
  readonly facts: QueryFacts;
  readonly views: ReadonlyMap<RelationFacts, ParsedText>;
  /** Names that could not be told from the text. */
  readonly unresolved: Set<string>;
  readonly unknownRelations: Set<string>;
  readonly sampled: Set<RelationFacts>;
  readonly calls: { readonly name: string; readonly args: number }[];
  /** The SELECTs of all texts that were turned into blocks, or into rows. */
  readonly visited: Set<Fields>;
  read(text: ParsedText): QueryBlock;
  block(select: Fields, around: Surrounding): QueryBlock;
  /** A SELECT inside itself. */
  isRecursion(select: Fields): boolean;
  expression(node: unknown, draft: BlockDraft): Expression;
  place(draft: BlockDraft): ExpressionPlace;
  sublink(fields: Fields, tests: readonly Expression[], draft: BlockDraft): void;
  noteColumns(expression: Expression): void;
}
