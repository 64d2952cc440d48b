import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What starts processes takes longest, and what waits for a mart that rests. */
const LONGEST = [
  "integration/slot-follow",
  "e2e/documented-commands",
  "integration/slot-keeping",
  "e2e/start",
  "chaos/kill-",
  "e2e/",
  "chaos/",
  "integration/",
  "",
];

/**
 * On a fresh clone Vitest knows no durations, and starts large files first. Some of the longest are the smallest, and
 * would run at the end, while the other workers have nothing to do.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number =>
      LONGEST.findIndex((part) => moduleId.includes(`/tests/${part}`));
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
