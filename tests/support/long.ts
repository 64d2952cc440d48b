/**
 * Long proofs are separate commands (scripts/test-long.mjs), which set this; `npm test` only tries a representative
 * sample of each.
 */
export const LONG = process.env["TEST_LONG"] !== undefined;

/** Said at the end of `npm test`. */
export const NOT_RUN =
  "Not run: every kill and every race on every path (npm run test:chaos), long random tests and large loads (npm run test:soak), " +
  "indexes on real search servers (npm run test:search; needs Java 21 or ELASTICSEARCH_URL).";
