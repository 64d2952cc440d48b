import { scan } from "libpg-query";
import type { GuardFinding } from "./refusal.ts";

/**
 * Limits that a text must meet before the parser sees it. The parser itself copes with any grammar, but writes its tree
 * by recursion: thousands of brackets would overflow its stack, and leave it in an undefined state.
 */

const MOST_QUERY_BYTES = 256 * 1024;
const MOST_TOKENS = 100_000;
/** A third of what the parser can take, and more than anybody writes by hand. */
const DEEPEST_NESTING = 300;
/** PostgreSQL's scanner reads such a run as a whole, puts all but the first sign back, and starts over. */
const MOST_SIGNS_IN_A_ROW = 300;
const SIGNS_IN_A_ROW = new RegExp(`[~!@#^&|\`?+\\-*/%<>=]{${MOST_SIGNS_IN_A_ROW + 1}}`);

export async function findExcess(query: string): Promise<GuardFinding | undefined> {
  const bytes = Buffer.byteLength(query, "utf8");
  if (bytes > MOST_QUERY_BYTES)
    return { what: `a query has at most ${MOST_QUERY_BYTES / 1024} KiB, and this one has ${bytes} bytes` };
  const offsetAt = (index: number): number => Buffer.byteLength(query.slice(0, index), "utf8");
  const nul = query.indexOf("\0");
  if (nul !== -1) return { offset: offsetAt(nul), what: "a query has no NUL character" };
  const signs = query.search(SIGNS_IN_A_ROW);
  if (signs !== -1) {
    return {
      offset: offsetAt(signs),
      what: `a query has at most ${MOST_SIGNS_IN_A_ROW} signs such as - and * in a row`,
    };
  }
  const tokens = await tokensOf(query);
  if (tokens.length > MOST_TOKENS) {
    return { what: `a query has at most ${MOST_TOKENS} words and signs, and this one has ${tokens.length}` };
  }
  const offset = tooDeepAt(tokens);
  return offset === undefined
    ? undefined
    : { offset, what: `the query nests more than ${DEEPEST_NESTING} levels deep` };
}

interface Token {
  readonly start: number;
  readonly text: string;
  readonly isKeyword: boolean;
}

/** An empty list where the text cannot be cut into tokens; then the parser does not get far either, and says why. */
async function tokensOf(query: string): Promise<readonly Token[]> {
  try {
    const { tokens } = await scan(withoutControlCharacters(query));
    return tokens
      .filter(({ tokenName }) => !tokenName.endsWith("_COMMENT"))
      .map(({ start, text, keywordName }) => ({ start, text, isKeyword: keywordName !== "NO_KEYWORD" }));
  } catch {
    return [];
  }
}

/** The scanner answers in JSON, but does not escape these. Line ends stay line ends: they end comments. */
function withoutControlCharacters(query: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what we look for.
  return query.replace(/\r/g, "\n").replace(/[\x00-\x09\x0b-\x1f]/g, " ");
}

/** The two sides of these are siblings in the tree, not one inside the other. */
const SEPARATING = new Set([",", "and", "or", "when", "then", "else", "select", "from", "where", "on", "having", ";"]);
/** Each of these contains everything before it in the same brackets, whatever separates it. */
const STACKING = new Set(["union", "intersect", "except", "join"]);

const CLOSED_BY: ReadonlyMap<string, string> = new Map([
  ["(", ")"],
  ["[", "]"],
  ["case", "end"],
]);
const CLOSING = new Set(CLOSED_BY.values());

interface BracketLevel {
  readonly closedBy: string;
  stacked: number;
  run: number;
}

/** Where the depth of the tree could pass the limit: each operator may nest as deep as a bracket does. */
function tooDeepAt(tokens: readonly Token[]): number | undefined {
  const levels: BracketLevel[] = [{ closedBy: "", stacked: 0, run: 0 }];
  let depth = 1;
  for (const [index, { start, text, isKeyword }] of tokens.entries()) {
    // After a dot every keyword is a name: t.end ends nothing.
    const isWord = isKeyword && tokens[index - 1]?.text !== ".";
    const word = isWord ? text.toLowerCase() : text;
    const level = levels.at(-1) as BracketLevel;
    const closedBy = CLOSED_BY.get(word);
    if (closedBy !== undefined) {
      levels.push({ closedBy, stacked: 0, run: 0 });
      depth += 1;
    } else if (CLOSING.has(word)) {
      depth -= closeLevel(levels, word);
    } else if (SEPARATING.has(word)) {
      depth -= level.run;
      level.run = 0;
    } else if (STACKING.has(word)) {
      level.stacked += 1;
      depth += 1;
    } else if (isWord || !/^[\w"'$.\u0080-\uffff]/.test(word)) {
      level.run += 1;
      depth += 1;
    }
    if (depth > DEEPEST_NESTING) return start;
  }
  return undefined;
}

/** Returns the depth that ends here: none where the word closes nothing, for END and CASE may also be names. */
function closeLevel(levels: BracketLevel[], word: string): number {
  const opened = levels.findLastIndex(({ closedBy }) => closedBy === word);
  if (opened === -1 || (word === "end" && opened < levels.length - 1)) return 0;
  return levels.splice(opened).reduce((sum, { stacked, run }) => sum + 1 + stacked + run, 0);
}
