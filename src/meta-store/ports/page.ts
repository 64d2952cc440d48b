export interface PageRequest {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
}

export interface Page<T> {
  readonly items: T[];
  readonly next: string | null;
}
