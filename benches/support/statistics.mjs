export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Ours ÷ the reference, by the medians of all rounds; the spread is that of the single rounds. Undefined where one side
 * was not measured.
 */
export function ratioOf({ ours, reference, target, ...names }, measured) {
  const [left, right] = [measured.get(ours), measured.get(reference)];
  if (left === undefined || right === undefined) return undefined;
  const perRound = left.map(({ ms }, round) => ms / right[round].ms);
  const value = median(left.map(({ ms }) => ms)) / median(right.map(({ ms }) => ms));
  return {
    ...names,
    target,
    value,
    least: Math.min(...perRound),
    most: Math.max(...perRound),
    rounds: perRound.length,
    reached: value <= target,
  };
}
