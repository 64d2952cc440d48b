/** The lines of two texts: those that both have, those that only the first has (-), and those of the second (+). */
export interface DiffLine {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}

/** A configuration is a few hundred lines at most, for which the plain table of common subsequences is quick enough. */
const MOST_CELLS = 4_000_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  if (a.length * b.length > MOST_CELLS) return [...a.map(only("-")), ...b.map(only("+"))];
  const common = commonLengths(a, b);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      lines.push({ mark: " ", text: a[i] ?? "" });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      lines.push({ mark: "-", text: a[i] ?? "" });
      i += 1;
    } else {
      lines.push({ mark: "+", text: b[j] ?? "" });
      j += 1;
    }
  }
  return lines;
}

/** The length of the longest common subsequence of both remainders, for each pair of positions. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint32Array[] {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const [row, below] = [lengths[i] as Uint32Array, lengths[i + 1] as Uint32Array];
    for (let j = b.length - 1; j >= 0; j -= 1) {
      row[j] = a[i] === b[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return lengths;
}

const CONTEXT_LINES = 3;

/** Without long unchanged stretches. */
export function withoutSameStretches(lines: readonly DiffLine[]): (DiffLine | "…")[] {
  const isNear = lines.map((_, index) =>
    lines.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).some(({ mark }) => mark !== " "),
  );
  return lines.flatMap((line, index): (DiffLine | "…")[] => {
    if (isNear[index]) return [line];
    return index === 0 || isNear[index - 1] ? ["…"] : [];
  });
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

const only =
  (mark: DiffLine["mark"]) =>
  (text: string): DiffLine => ({ mark, text });
