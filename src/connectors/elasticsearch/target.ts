import { quoted } from "../../domain/quoted.ts";
import { notAllowed } from "../targets.ts";

export interface IndexTarget {
  readonly kind: "elasticsearch";
  readonly index: string;
}

const INDEX_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export function parseIndex(index: string): IndexTarget {
  if (!INDEX_NAME.test(index)) {
    throw notAllowed(
      `${quoted(index)} is not an index name: use 1 to 63 lower-case letters, digits, _ and -, beginning with a letter or digit.`,
    );
  }
  return { kind: "elasticsearch", index };
}

/** The aliases beside the one that people read. */
export function isOwnAlias({ index }: IndexTarget): boolean {
  return /__(?:previous$|write_|restored_)/.test(index);
}
