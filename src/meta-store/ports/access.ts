import type { Role } from "../../domain/access.ts";
import type { ApiKey, NewApiKey } from "../../domain/api-key.ts";
import type { AuditEntry, AuditedAttempt, AuditOrigin } from "../../domain/audit.ts";
import type { Page, PageRequest } from "./page.ts";

/** The keys of the API. */
export interface KeyStore {
  create(key: NewApiKey, author: string): Promise<CreatedKey>;
  list(page: PageRequest): Promise<Page<ApiKey>>;
  /** Takes effect with the next request. A key that is revoked already stays as it is. */
  revoke(id: string): Promise<ApiKey>;
  /** What the check of a key needs. */
  find(id: string): Promise<StoredKey | undefined>;
  /** Notes the time, to the minute. */
  markUsed(id: string): Promise<void>;
}

/** The key itself can be read only here, once. */
type CreatedKey = ApiKey & { readonly key: string };

interface StoredKey {
  readonly name: string;
  readonly role: Role;
  readonly secretHash: Buffer;
  readonly revoked: boolean;
  readonly expired: boolean;
  /** Its last use was noted within the last minute. */
  readonly useNoted: boolean;
}

export interface AuditLog {
  /**
   * Every change that `work` makes, also in the promises it starts, is recorded in the audit log, in the transaction
   * that makes the change. What only reads leaves no entry.
   */
  recording<T>(origin: AuditOrigin, work: () => T): T;
  recordAttempt(attempt: AuditedAttempt): Promise<void>;
  list(page: AuditPage): Promise<Page<AuditEntry>>;
}

interface AuditPage extends PageRequest {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** An id or a name. */
  readonly object?: string | undefined;
}
