/** Requests that may be repeated. */
export interface AnswerStore {
  begin(request: KeyedRequest): Promise<KnownRequest>;
  keep(request: KeyedRequest, answer: StoredAnswer): Promise<void>;
  /** It came to nothing: a repeat starts from the beginning. */
  forget(request: KeyedRequest): Promise<void>;
}

/** A request that carries a key of its sender's, so that it can be sent twice and happens once. */
export interface KeyedRequest {
  readonly actor: string;
  readonly key: string;
  readonly operation: string;
  /** Of everything else in the request. */
  readonly hash: string;
}

interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * - `begun`: it is new, and the caller carries it out.
 * - `under_way`: somebody is carrying it out.
 * - `other`: the key belongs to another request.
 */
export type KnownRequest =
  | { readonly kind: "begun" | "under_way" | "other" }
  | { readonly kind: "answered"; readonly answer: StoredAnswer };
