/** One-dimensional PostgreSQL arrays as text. Parsing and formatting reproduces exactly what PostgreSQL printed. */

/** The elements as texts; undefined for more dimensions or bounds of its own (`[0:1]={a,b}`). */
export function parseArrayText(text: string): (string | null)[] | undefined {
  if (!text.startsWith("{")) return undefined;
  if (text === "{}") return [];
  const inner = text.slice(1, -1);
  if (!/["\\{]/.test(inner)) return inner.split(",").map((element) => (element === "NULL" ? null : element));
  return parseQuoted(inner);
}

const ELEMENT = /(?:"((?:[^"\\]|\\.)*)"|([^",{}]+))(,|$)/suy;

function parseQuoted(inner: string): (string | null)[] | undefined {
  const elements: (string | null)[] = [];
  ELEMENT.lastIndex = 0;
  for (;;) {
    const [, quoted, plain, separator] = ELEMENT.exec(inner) ?? [];
    if (separator === undefined) return undefined;
    if (quoted !== undefined) elements.push(quoted.replace(/\\(.)/gsu, "$1"));
    else elements.push(plain === "NULL" || plain === undefined ? null : plain);
    if (separator === "") return elements;
  }
}

/** The rule of PostgreSQL's own `array_out`. */
const NEEDS_QUOTES = /^$|^null$|[{},"\\ \t\n\v\f\r]/i;

export function formatArrayText(elements: readonly (string | null)[]): string {
  const texts = elements.map((element) => {
    if (element === null) return "NULL";
    return NEEDS_QUOTES.test(element) ? `"${element.replace(/["\\]/g, "\\$&")}"` : element;
  });
  return `{${texts.join(",")}}`;
}
