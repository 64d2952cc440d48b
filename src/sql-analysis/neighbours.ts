import type { Partition, QueryLeaf, SelectBlock } from "./model.ts";

export const outputColumn = (position: number): string => `c${position}`;
export const partitionColumn = (position: number): string => `p${position}`;

/** The rows of a SELECT, with the columns that one of its windows is partitioned by. */
export function neighbours(block: SelectBlock, { by }: Partition): QueryLeaf {
  const outputs = [
    ...block.outputs.map((output, position) => ({ ...output, name: outputColumn(position) })),
    ...by.map((value, position) => ({ name: partitionColumn(position), value, computedBy: undefined })),
  ];
  return {
    kind: "query",
    alias: "neighbours",
    block: { ...block, outputs },
    columns: outputs.map(({ name }) => name),
    offset: undefined,
    source: { text: "", view: undefined },
    isLateral: false,
    view: undefined,
    hasAlias: true,
  };
}
