// Why a target ratio is missed, by its name; based on what the bench has measured.

const times = (value) => value.toFixed(2);

export const REMARKS = {
  "batches-1k": ({ rows, medianOf }) => {
    const moreBatches = rows / 1000 - rows / 5000;
    const perBatch = (medianOf("batches of 1000") - medianOf("batches of 5000")) / moreBatches;
    const perRows = medianOf("one statement") / (rows / 1000);
    return (
      `what a batch costs besides its rows (two transactions, an emptied stage, the checkpoint, the flush of the WAL) is ` +
      `${perBatch.toFixed(1)} ms here; by hand 1,000 rows take ${perRows.toFixed(1)} ms.`
    );
  },

  unchanged: ({ medianOf }) =>
    "the first load fills a table without indexes and builds its key at the end, which is already faster than the one " +
    "statement. Comparing must read both sides and look at every value. Measured against the one statement, a first " +
    `load by hand, the second load takes ${times(medianOf("second full load") / medianOf("one statement"))}. ` +
    "Nothing is written to the target.",

  changes: ({ medianOf }) =>
    `opening and closing a run (describing the query, finding the target, its stage, the horizon, the checkpoint) takes ` +
    `about 100 ms whatever the number of rows, and the one statement only ${Math.round(medianOf("changes by one statement"))} ms.`,

  "follow-by-hand": ({ medianOf }) =>
    "a run claims, checks source and target, finds the keys among the changes, moves its position and ends, which takes " +
    `about ${Math.round(medianOf("1 % of the keys") - medianOf("1 % of the keys, by hand"))} ms here, however many keys there are.`,
};
