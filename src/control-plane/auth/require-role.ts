import type { FastifyRequest } from "fastify";
import { mayActAs, type Role } from "../../domain/access.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";

export function requireRole({ caller }: FastifyRequest, needed: Role | undefined): void {
  // A route without access cannot be registered; if one slipped through, nobody may use it.
  if (needed === undefined) throw new VitrinaError("ROLE_TOO_LOW", "Nobody may do this.");
  if (caller?.role !== undefined && mayActAs(caller.role, needed)) return;
  const held = caller?.role === undefined ? "your token names no role that is known here" : `you are ${caller.role}`;
  throw new VitrinaError("ROLE_TOO_LOW", `This needs the role ${needed}; ${held}.`, {
    extra: { role_needed: needed, role_held: caller?.role ?? null },
  });
}
