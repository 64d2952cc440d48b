/** Who may do what. Each role may do everything that the roles before it may. */
export const ROLES = ["viewer", "operator", "editor", "admin"] as const;
export type Role = (typeof ROLES)[number];

export function mayActAs(held: Role, needed: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(needed);
}

/** Whoever sends a request, as versions and the audit log name them. */
export interface Actor {
  readonly name: string;
  readonly role: Role;
}
