import type { RegisteredTask, RunnerView } from "../../domain/runner.ts";

export interface RunnerRegistry {
  register(runner: RunnerInfo): Promise<void>;
  /** Those seen within a day, the living first. */
  list(): Promise<RunnerView[]>;
  /** The code tasks of all living runners. */
  listTasks(): Promise<RegisteredTask[]>;
  markSeen(runnerId: string): Promise<void>;
  markStopped(runnerId: string): Promise<void>;
}

interface RunnerInfo {
  readonly id: string;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly tasks?: readonly Omit<RegisteredTask, "runners">[];
  /** It marks itself as seen at least so often. */
  readonly reportEveryMs?: number;
}
