/**
 * Long proofs are separate commands (scripts/test-long.mjs), which set this; `npm test` only tries a representative
 * sample of each.
 */
export const LONG = process.env["TEST_LONG"] !== undefined;

/**
 * Whole files that only `npm run test:chaos` runs: each start of a runner costs a second, and what they show on their path
 * or at random, other files show in `npm test` on another one.
 */
export const ONLY_IN_CHAOS = [
  "kill-elsewhere",
  "kill-follow-elsewhere",
  "kill-follow-slot",
  "kill-stream",
  "random-kills",
  "repeated-ids",
  "retry-rejects",
  "server-restart",
].map((name) => `tests/chaos/${name}.test.ts`);

/** Said at the end of `npm test`. */
export const NOT_RUN =
  "Not run: every kill and every race on every path (npm run test:chaos), long random tests, large loads and the commands of most pages (npm run " +
  "test:soak), marts that follow 2,000 rounds of random changes (npm run test:follow), indexes on real search servers (npm run test:search; needs " +
  "Java 21 or ELASTICSEARCH_URL); CONTRIBUTING.md lists the others.";
