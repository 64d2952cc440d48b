import { type AddressInfo, createServer } from "node:net";

/** The wanted port when nobody listens on it, otherwise any free one. */
export async function choosePort(wanted: number | undefined): Promise<number> {
  return (wanted && (await tryPort(wanted))) || (await freePort());
}

export async function freePort(): Promise<number> {
  const port = await tryPort(0);
  if (port === undefined) throw new Error("no port on 127.0.0.1 is free");
  return port;
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => {
      const { port: bound } = server.address() as AddressInfo;
      server.close(() => resolve(bound));
    });
  });
}
