import { cut, printable, textWidth } from "./text-width.ts";

export interface Column {
  readonly title: string;
  readonly align?: "right";
}

const GAP = "  ";
/** Narrower columns say nothing; rather the last ones are left out. */
const LEAST_WIDTH = 12;

/** `terminalWidth` is undefined where nothing may be cut: in files and pipes. */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  terminalWidth: number | undefined,
): string {
  const lines = [columns.map(({ title }) => title), ...rows].map((row) => row.map(printable));
  const widths = fittedWidths(
    columns.map((_, index) => Math.max(...lines.map((row) => textWidth(row[index] ?? "")))),
    terminalWidth,
  );
  return lines
    .map((row) => row.map((cell, index) => padded(cell, widths[index] ?? 0, columns[index]?.align)).join(GAP))
    .map((line) => (terminalWidth === undefined ? line : cut(line, terminalWidth)).trimEnd())
    .join("\n");
}

/** Takes from the widest columns first, so that short ones stay whole. */
function fittedWidths(wanted: readonly number[], terminalWidth: number | undefined): readonly number[] {
  if (terminalWidth === undefined) return wanted;
  const available = terminalWidth - GAP.length * (wanted.length - 1);
  const total = (most: number): number => wanted.reduce((sum, width) => sum + Math.min(width, most), 0);
  let most = Math.max(...wanted);
  while (most > LEAST_WIDTH && total(most) > available) most -= 1;
  return wanted.map((width) => Math.min(width, most));
}

function padded(cell: string, width: number, align: Column["align"]): string {
  const text = cut(cell, width);
  const space = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "right" ? space + text : text + space;
}
