/** A place in a text, as an editor shows it: lines and columns count from 1, and a column is a character. */
export interface TextPlace {
  readonly line: number;
  readonly column: number;
}

/** The place of a text that follows `before`. */
export function placeAfter(before: string): TextPlace {
  const lines = before.split(/\r\n|\r|\n/);
  return { line: lines.length, column: [...(lines.at(-1) ?? "")].length + 1 };
}
