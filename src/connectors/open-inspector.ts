import type { StuckBackend } from "../observability/stuck-backends.ts";
import type { InspectionSurroundings } from "./description.ts";
import type { Inspector, TargetInspector } from "./inspector.ts";
import { openSourceInspector } from "./postgres/source-inspector.ts";
import type { ConfiguredSink } from "./targets.ts";

export interface InspectorConfig {
  readonly sourceUrls: ReadonlyMap<string, string>;
  readonly sinks: readonly ConfiguredSink[];
  readonly surroundings: InspectionSurroundings;
  /** Told of a process of a source that does not end. */
  readonly onStuck?: (backend: StuckBackend) => void;
}

export function openInspector({ sourceUrls, sinks, surroundings, onStuck }: InspectorConfig): Inspector {
  const { applicationName, timeoutMs } = surroundings;
  const opened = new Map<string, Promise<TargetInspector> | undefined>();
  return {
    source(connection) {
      const url = sourceUrls.get(connection);
      return url === undefined ? undefined : openSourceInspector({ url, applicationName, timeoutMs, onStuck });
    },
    async target({ kind }) {
      if (!opened.has(kind)) {
        const found = sinks.find(({ description }) => description.kind === kind);
        opened.set(kind, found?.description.inspect?.(found.settings, surroundings));
      }
      return opened.get(kind);
    },
  };
}
