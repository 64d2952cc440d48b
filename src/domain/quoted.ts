/** Text of a stranger in a sentence of ours: escaped, and not longer than anybody wants to read. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
