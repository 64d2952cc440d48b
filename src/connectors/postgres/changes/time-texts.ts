import { nodesIn } from "../../../sql-guard/mentions.ts";
import { type Statement, statementsOf } from "../../../sql-guard/tree.ts";

/** Texts of a query that depend on when it is read: 'today', '{today,yesterday}', '[today,)', '00:00 today'. */

/** Anywhere: it may be a part of an array or a range, or follow a time, even without a blank. */
const WORDS = /(?<![a-z])(now|today|tomorrow|yesterday)(?![a-z])/gi;

/**
 * PostgreSQL turns 'today' into a date when it reads the query, and prints that date in the definition. As a text that is
 * nothing but itself it is still there, as it was or, in jsonb and in arrays of texts, with other blanks.
 */
export async function timeTexts(query: string, definition: string, castsTexts: boolean): Promise<readonly string[]> {
  const [written, kept] = [await textsIn(query), await textsIn(definition)];
  const vanished = without(written, kept);
  const reprinted = without(kept, written);
  const isGone = (word: string): boolean => countOf(word, vanished) > countOf(word, reprinted);
  const frozen = vanished.filter((text) => wordsIn(text).some(isGone));
  // What is still there may become a time when the query runs.
  const later = castsTexts ? [...written, ...kept].filter(couldBeTime) : [];
  return [...new Set([...frozen, ...later])];
}

const wordsIn = (text: string): readonly string[] => (text.match(WORDS) ?? []).map((word) => word.toLowerCase());

const countOf = (word: string, texts: readonly string[]): number =>
  texts.flatMap(wordsIn).filter((one) => one === word).length;

/** Those texts of which there are more here than among the others. */
function without(texts: readonly string[], others: readonly string[]): readonly string[] {
  const timesIn = (list: readonly string[], text: string): number => list.filter((one) => one === text).length;
  return texts.filter((text) => timesIn(texts, text) > timesIn(others, text));
}

/** It begins with the word, or has no other. */
const couldBeTime = (text: string): boolean =>
  /^\s*(now|today|tomorrow|yesterday)\b/i.test(text) || !/[a-z]/i.test(text.replaceAll(WORDS, ""));

/** Those that have such a word. */
async function textsIn(query: string): Promise<readonly string[]> {
  const statements = await statementsOf(query);
  const trees = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
  return trees.flatMap(({ node }) =>
    [...nodesIn(node)].flatMap(({ kind, fields }) => {
      const text = kind === "A_Const" ? (fields as { sval?: { sval?: string } }).sval?.sval : undefined;
      return text !== undefined && wordsIn(text).length > 0 ? [text] : [];
    }),
  );
}
