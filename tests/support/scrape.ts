/** What a process shows at /metrics, parsed. */
export interface Scrape {
  readonly text: string;
  /** By the name that HELP and TYPE have. */
  readonly families: ReadonlyMap<string, Family>;
  /** The sum of the samples that have these labels. */
  value(sample: string, labels?: Labels): number;
  /** Every value of a label, in order. */
  labelValues(sample: string, label: string): string[];
}

export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

type Labels = Readonly<Record<string, string>>;

export async function scrape(url: string): Promise<Scrape> {
  const answer = await fetch(`${url}/metrics`);
  if (answer.status !== 200) throw new Error(`${url}/metrics answered ${answer.status}: ${await answer.text()}`);
  return parseScrape(await answer.text());
}

export function parseScrape(text: string): Scrape {
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>();
  let current: { type: string; help: string; samples: Sample[] } | undefined;
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [, keyword, name, rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === "HELP") {
      current = { type: "", help: rest as string, samples: [] };
      families.set(name as string, current);
    } else if (keyword === "TYPE" && current !== undefined) current.type = rest as string;
    else current?.samples.push(parseSample(line));
  }
  const matching = (sample: string, labels: Labels): Sample[] =>
    [...families.values()]
      .flatMap(({ samples }) => samples)
      .filter(({ name }) => name === sample)
      .filter((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value));
  return {
    text,
    families,
    value: (sample, labels = {}) => matching(sample, labels).reduce((sum, { value }) => sum + value, 0),
    labelValues: (sample, label) => [...new Set(matching(sample, {}).map(({ labels }) => labels[label] ?? ""))].sort(),
  };
}

function parseSample(line: string): Sample {
  const [, name, labels = "", value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined) throw new Error(`This is no sample: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text]);
  return { name, labels: Object.fromEntries(pairs), value: Number(value) };
}
