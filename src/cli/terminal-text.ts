/** How texts look on a terminal. */

let segmenter: Intl.Segmenter | undefined;

/** Made when it is first needed: that takes as long as a whole command. */
function graphemesOf(text: string): Iterable<Intl.SegmentData> {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** East Asian characters and emoji take two columns, combining marks none. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|.\u{FE0F}|[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1F64F}\u{1F900}-\u{1F9FF}\u{20000}-\u{3FFFD}])/u;
/** A character a column: most texts. */
const NARROW = /^[\x20-\x7E]*$/;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

/** Everything that would move the cursor, control the terminal or change the text direction, including line breaks. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;
const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** One line that is safe to print; what cannot be printed is escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** The same for text of several lines; their line ends are kept. */
export function printableLines(text: string): string {
  return text.replace(UNPRINTABLE, (character) => (character === "\n" ? character : escaped(character)));
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return SHORT_ESCAPES[character] ?? `\\u${code.toString(16).padStart(4, "0")}`;
}

export function textWidth(text: string): number {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemesOf(text)) width += graphemeWidth(segment);
  return width;
}

/** Text that fits into `width` columns; an ellipsis replaces what was cut. */
export function cut(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const { segment } of graphemesOf(text)) {
    used += graphemeWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}

export interface TableColumn {
  readonly title: string;
  readonly align?: "right";
}

const COLUMN_GAP = "  ";
/** Narrower columns would be useless; instead the last ones are left out. */
const LEAST_COLUMN_WIDTH = 12;

/** `terminalWidth` is undefined for files and pipes, where nothing may be cut. */
export function formatTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  terminalWidth: number | undefined,
): string {
  const lines = [columns.map(({ title }) => title), ...rows].map((row) => row.map(printable));
  const widths = fittedWidths(
    columns.map((_, index) => Math.max(...lines.map((row) => textWidth(row[index] ?? "")))),
    terminalWidth,
  );
  return lines
    .map((row) => row.map((cell, index) => padded(cell, widths[index] ?? 0, columns[index]?.align)).join(COLUMN_GAP))
    .map((line) => (terminalWidth === undefined ? line : cut(line, terminalWidth)).trimEnd())
    .join("\n");
}

/** Shrinks the widest columns first, so that narrow ones stay whole. */
function fittedWidths(wanted: readonly number[], terminalWidth: number | undefined): readonly number[] {
  if (terminalWidth === undefined) return wanted;
  const available = terminalWidth - COLUMN_GAP.length * (wanted.length - 1);
  const total = (most: number): number => wanted.reduce((sum, width) => sum + Math.min(width, most), 0);
  let most = Math.max(...wanted);
  while (most > LEAST_COLUMN_WIDTH && total(most) > available) most -= 1;
  return wanted.map((width) => Math.min(width, most));
}

function padded(cell: string, width: number, align: TableColumn["align"]): string {
  const text = cut(cell, width);
  const space = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "right" ? space + text : text + space;
}
