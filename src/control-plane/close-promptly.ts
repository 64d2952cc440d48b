import type { Socket } from "node:net";
import type { Api } from "./api.ts";

/** Requests under way get so long to be answered. */
const PATIENCE_MS = 5000;

/**
 * A server that stops waits for its connections. Browsers and HTTP clients open some ahead, and for Node.js those are
 * not idle until their first request: they would hold the stop up for a minute.
 */
export function closePromptly(api: Api): void {
  const sockets = new Set<Socket>();
  api.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  api.addHook("preClose", async () => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    setTimeout(() => api.server.closeAllConnections(), PATIENCE_MS).unref();
  });
}
