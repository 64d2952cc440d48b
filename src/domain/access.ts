/** Who may do what. Each role may do everything that the roles before it may. */
export const ROLES = ["viewer", "operator", "editor", "admin"] as const;
export type Role = (typeof ROLES)[number];

export function mayActAs(held: Role, needed: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(needed);
}

export function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

export function highestRole(roles: readonly Role[]): Role | undefined {
  return ROLES.findLast((role) => roles.includes(role));
}

/** Who sent a request, as versions and the audit log name them. */
export interface Actor {
  readonly name: string;
  readonly role: Role;
}
