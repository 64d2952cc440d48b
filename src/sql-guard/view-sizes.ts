import type { Finding } from "./refusal.ts";

/** One line for each relation that the rule of a view names, or one without a relation. */
export interface RuleSize {
  readonly view: string;
  readonly relation: string | null;
  readonly times: number;
  readonly length: number;
}

/** As in `structure.ts`, but views are other people's, who like to make them of one another. */
const MOST_RELATIONS = 5000;
/** Of the analysed query, with all stars written out. A column takes a few hundred. */
const MOST_CHARACTERS = 24 * 1024 * 1024;

interface Expanded {
  readonly relations: number;
  readonly characters: number;
}

/** What the server plans once every view stands where it is named: views of views multiply. */
export function excessOfViews(sizes: readonly RuleSize[], starts: readonly string[]): readonly Finding[] {
  const rules = new Map<string, RuleSize[]>();
  for (const size of sizes) rules.set(size.view, [...(rules.get(size.view) ?? []), size]);
  const known = new Map<string, Expanded>();
  const expand = (relation: string): Expanded => {
    const done = known.get(relation);
    if (done !== undefined) return done;
    const rule = rules.get(relation) ?? [];
    // A rule cannot lead back to its own view, but nothing here depends on that.
    known.set(relation, { relations: 1, characters: 0 });
    const total = { relations: rule.length === 0 ? 1 : 0, characters: rule[0]?.length ?? 0 };
    for (const { relation: inner, times } of rule) {
      if (inner === null) continue;
      const { relations, characters } = expand(inner);
      total.relations += times * relations;
      total.characters += times * characters;
    }
    known.set(relation, total);
    return total;
  };
  const all = starts.map(expand);
  const relations = all.reduce((sum, one) => sum + one.relations, 0);
  const characters = all.reduce((sum, one) => sum + one.characters, 0);
  if (relations > MOST_RELATIONS) {
    const what = "tables once its views are put in their place";
    return [{ what: `the query comes to ${relations} ${what}, and at most ${MOST_RELATIONS} are allowed` }];
  }
  if (characters <= MOST_CHARACTERS) return [];
  const [size, most] = [characters, MOST_CHARACTERS].map((count) => `${Math.ceil(count / 1024 / 1024)} MiB`);
  return [
    { what: `the query comes to ${size} once it is analysed, and at most ${most} are allowed: select fewer columns` },
  ];
}
