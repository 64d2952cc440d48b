import { VitrinaError } from "../../domain/error-catalogue.ts";

/** Something was sent, but it is no valid login; many of these in a minute look like guessing. */
export class BadLogin extends VitrinaError {}

export function badLogin(message: string, cause?: unknown): BadLogin {
  return new BadLogin("UNAUTHENTICATED", message, { cause });
}
