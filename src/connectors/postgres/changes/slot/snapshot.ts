/** Snapshots as `pg_current_snapshot()` prints them, and places in the WAL as `pg_lsn` prints them. */

export interface Snapshot {
  readonly xmin: bigint;
  readonly xmax: bigint;
  /** Began before it, and had not ended for it. */
  readonly running: ReadonlySet<bigint>;
}

export function readSnapshotText(text: string): Snapshot {
  const [xmin = "0", xmax = "0", running = ""] = text.split(":");
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    running: new Set(running === "" ? [] : running.split(",").map(BigInt)),
  };
}

export function isVisible(xid: bigint, { xmin, xmax, running }: Snapshot): boolean {
  return xid < xmin || (xid < xmax && !running.has(xid));
}

/** Whether the snapshot `later` shows everything that `earlier` shows. */
export function shows(later: Snapshot, earlier: Snapshot): boolean {
  return later.xmax >= earlier.xmax && [...later.running].every((xid) => !isVisible(xid, earlier));
}

const ROUND = 1n << 32n;

/** The WAL has the last 32 bits of a transaction's number. It is never further than half a round from those of now. */
export function wholeXid(last32: number, { xmax }: Snapshot): bigint {
  const near = (xmax / ROUND) * ROUND + BigInt(last32);
  if (near > xmax + ROUND / 2n) return near - ROUND;
  return near + ROUND / 2n < xmax ? near + ROUND : near;
}

export function lsnNumber(text: string): bigint {
  const [high = "0", low = "0"] = text.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function lsnText(lsn: bigint): string {
  const hex = (part: bigint): string => part.toString(16).toUpperCase();
  return `${hex(lsn >> 32n)}/${hex(lsn & (ROUND - 1n))}`;
}
