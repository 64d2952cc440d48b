import { setTimeout as delay } from "node:timers/promises";

/**
 * Named places where a test can make a fault happen: at every boundary where something becomes durable. Off unless the
 * runner is started with VITRINA_FAULT; then `name:nth:action` acts when the point is passed for the nth time.
 */
export const FAULT_POINTS = [
  "claimed",
  "prepared",
  "batch_read",
  "batch_transformed",
  "transaction_begun",
  "batch_staged",
  "bulk_ready",
  "bulk_answered",
  "batch_applied",
  "checkpoint_recorded",
  "data_committed",
  "batch_committed",
  "load_read",
  "load_applied",
  "switch_ready",
  "alias_switched",
  "load_committed",
  "watermark_moved",
  "round_opened",
  "keys_found",
  "chunk_committed",
  "compare_noted",
  "position_moved",
  "sweep_compared",
  "before_finish",
  "reconcile_batch",
  "reconcile_read",
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

const ACTIONS = {
  /** Ends the process as abruptly as a power failure would. */
  kill: async (): Promise<void> => {
    process.kill(process.pid, "SIGKILL");
    await delay(60_000);
  },
  /** Freezes the whole process, all its threads, until it gets SIGCONT. */
  stop: async (): Promise<void> => {
    process.kill(process.pid, "SIGSTOP");
  },
  /** Waits here until it gets SIGUSR2; the rest of the process, such as the heartbeat, goes on. */
  park: (): Promise<void> => new Promise((resolve) => process.once("SIGUSR2", () => resolve())),
  error: async (_ms: number, name: FaultPoint): Promise<void> => {
    throw new Error(`fault point ${name}`);
  },
  delay: async (ms: number): Promise<void> => {
    await delay(ms);
  },
  /** Blocks the event loop, so that nothing else in this thread gets a turn. */
  block: async (ms: number): Promise<void> => {
    const until = performance.now() + ms;
    while (performance.now() < until);
  },
};

interface Fault {
  readonly name: FaultPoint;
  readonly nth: number;
  readonly action: keyof typeof ACTIONS;
  readonly ms: number;
}

let trigger: ((name: FaultPoint) => Promise<void>) | undefined;

/** Costs one comparison when faults are off. */
export function faultPoint(name: FaultPoint): Promise<void> | undefined {
  return trigger?.(name);
}

/** `spec`: `batch_applied:3:kill`, `batch_read:1:delay:500`; several are separated by commas. */
export function enableFaults(spec: string): void {
  const faults = spec.split(",").map(parseFault);
  const passed = new Map<FaultPoint, number>();
  trigger = async (name) => {
    const count = (passed.get(name) ?? 0) + 1;
    passed.set(name, count);
    for (const fault of faults) if (fault.name === name && fault.nth === count) await act(fault);
  };
}

/** A fault that is misspelt would never happen, and its test would prove nothing. */
function parseFault(text: string): Fault {
  const [name, nth = "1", action = "kill", ms = "1000"] = text.trim().split(":");
  const point = FAULT_POINTS.find((known) => known === name);
  if (point === undefined || !/^[1-9]\d*$/.test(nth) || !/^\d+$/.test(ms) || !Object.hasOwn(ACTIONS, action)) {
    throw new Error(`VITRINA_FAULT has no meaning: ${text}`);
  }
  return { name: point, nth: Number(nth), action: action as keyof typeof ACTIONS, ms: Number(ms) };
}

async function act({ name, action, ms }: Fault): Promise<void> {
  process.stderr.write(`FAULT ${name} ${action}\n`);
  await ACTIONS[action](ms, name);
}
