import type { FastifyRequest } from "fastify";
import type { Actor, Role } from "../domain/access.ts";

/** The caller a login identified. A token of the company's login service may be valid and yet give no role here. */
export interface Caller {
  readonly name: string;
  readonly role: Role | undefined;
  readonly keyId: string | null;
}

/** Without a login, anyone who reaches the API is taken to be the person at this machine. */
export const LOCAL: Caller = { name: "local", role: "admin", keyId: null };

declare module "fastify" {
  interface FastifyRequest {
    /** Set by the guard; `undefined` where anyone may ask, and before the login was checked. */
    caller: Caller | undefined;
  }
}

/** For operations that need a role: the guard has let nobody else through. */
export function actorOf({ caller }: FastifyRequest): Actor {
  if (caller?.role === undefined) throw new Error("An operation that anyone may call has no actor.");
  return { name: caller.name, role: caller.role };
}
