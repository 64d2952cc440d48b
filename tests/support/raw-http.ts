import { connect } from "node:net";

/** Sends exactly these bytes, then nothing, and reads until the server ends the connection. */
export function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("error", reject).on("close", () => resolve(answer));
  });
}
