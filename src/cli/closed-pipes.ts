/** The reader may stop reading, as `head` does: that is not our error. A server stops as if it were told to. */
export function tolerateClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      if (process.listenerCount("SIGTERM") === 0) process.exit();
      process.kill(process.pid, "SIGTERM");
    });
  }
}
