import { setTimeout as delay } from "node:timers/promises";

/**
 * Named places where a test can make a fault happen: at every boundary where something becomes durable. Off unless the
 * runner is started with VITRINA_FAULT; then `name:nth:action` acts when the point is passed for the nth time.
 */
export type FaultPoint =
  | "claimed"
  | "prepared"
  | "batch_read"
  | "batch_transformed"
  | "transaction_begun"
  | "batch_staged"
  | "batch_applied"
  | "checkpoint_recorded"
  | "batch_committed"
  | "load_read"
  | "load_applied"
  | "load_committed"
  | "watermark_moved"
  | "before_finish";

type FaultAction =
  | { readonly kind: "kill" }
  /** Says so on stderr and waits for good: a test stops or kills the process while it stands exactly here. */
  | { readonly kind: "park" }
  | { readonly kind: "error" }
  | { readonly kind: "delay"; readonly ms: number }
  /** Computes without a pause, so that nothing else in the process gets a turn. */
  | { readonly kind: "block"; readonly ms: number };

let trigger: ((name: FaultPoint) => Promise<void>) | undefined;

/** Costs one comparison when faults are off. */
export function faultPoint(name: FaultPoint): Promise<void> | undefined {
  return trigger?.(name);
}

/** `spec`: `batch_applied:3:kill`, `batch_read:1:delay:500`; several are separated by commas. */
export function enableFaults(spec: string): void {
  const faults = spec.split(",").map(parseFault);
  const passed = new Map<string, number>();
  trigger = async (name) => {
    const count = (passed.get(name) ?? 0) + 1;
    passed.set(name, count);
    for (const fault of faults) if (fault.name === name && fault.nth === count) await act(name, fault.action);
  };
}

function parseFault(text: string): { name: string; nth: number; action: FaultAction } {
  const [name = "", nth = "1", kind = "kill", ms = "1000"] = text.split(":");
  const action = { kind, ms: Number(ms) } as FaultAction;
  return { name, nth: Number(nth), action };
}

async function act(name: FaultPoint, action: FaultAction): Promise<void> {
  process.stderr.write(`FAULT ${name} ${action.kind}\n`);
  switch (action.kind) {
    case "kill":
      process.kill(process.pid, "SIGKILL");
      return delay(60_000);
    case "park":
      return new Promise(() => undefined);
    case "error":
      throw new Error(`fault point ${name}`);
    case "delay":
      return delay(action.ms);
    case "block": {
      const until = performance.now() + action.ms;
      while (performance.now() < until);
      return undefined;
    }
  }
}
