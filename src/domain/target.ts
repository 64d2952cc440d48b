/** Where a pipeline writes. Only the connector of its kind knows the rest of it. */
export interface Target {
  readonly kind: string;
}

/** Reads the text of `target_table`, once, at the edge: nothing else looks at its prefix or its dots. */
export interface TargetReader {
  /** Throws TARGET_NOT_ALLOWED, with a sentence that says what is allowed. */
  require(text: string): Target;
}

/** What a connector can do with its targets; the engine asks for this, and never for the kind. */
export interface SinkAbilities {
  /** Rows may come as the bytes that the source sent; otherwise each value is decoded. */
  readonly takesBytes: boolean;
  /** The target as it was before the last full load is kept, and can be brought back. */
  readonly keepsPrevious: boolean;
}
