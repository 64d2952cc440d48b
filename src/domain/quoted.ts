/** Text from outside, quoted in one of our sentences: escaped, and cut to a readable length. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
