export interface WorkLimits {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** The error to throw when the time is up. */
  timeoutError(): Error;
}

/** A timer this late means that this process was busy: the work may have finished long ago. */
const BUSY_MS = 250;
const SECOND_LOOK_MS = 1000;

/** Settles as the work does, unless the signal or the timeout comes first. It does not stop the work. */
export async function withinLimits<T>(work: Promise<T>, { signal, timeoutMs, timeoutError }: WorkLimits): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let abort = (): void => undefined;
  const limit = new Promise<never>((_, reject) => {
    const waitFor = (ms: number): void => {
      const due = performance.now() + ms;
      timer = setTimeout(() => {
        if (performance.now() > due + BUSY_MS) waitFor(SECOND_LOOK_MS);
        else reject(timeoutError());
      }, ms);
    };
    waitFor(timeoutMs);
    abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
