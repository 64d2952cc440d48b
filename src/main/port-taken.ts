import { VitrinaError } from "../domain/error-catalogue.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export function isPortTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EADDRINUSE";
}

export function portTaken({ host, port }: Address): VitrinaError {
  return new VitrinaError("PORT_TAKEN", `Another program listens on ${host}:${port}.`);
}
