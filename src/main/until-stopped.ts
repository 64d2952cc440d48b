/** Resolves with the name of the first signal that asks the process to end. A second one ends it at once. */
export function untilStopped(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const ask = (signal: NodeJS.Signals): void => {
      if (asked) process.exit(130);
      asked = true;
      resolve(signal);
    };
    // SIGHUP: the terminal was closed.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, ask);
  });
}
