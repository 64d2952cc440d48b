import type { StuckBackend } from "../observability/stuck-backends.ts";
import type { Inspector } from "./inspector.ts";
import { openSourceInspector } from "./postgres/source-inspector.ts";
import { openTargetInspector } from "./postgres/target-inspector.ts";

export interface InspectorConfig {
  readonly sourceUrls: ReadonlyMap<string, string>;
  readonly writerUrl: string;
  /** True when a runner can move rows without their leaving the server. */
  readonly canPull: boolean;
  readonly timeoutMs: number;
  /** Told of a process of a source that does not end. */
  readonly onStuck?: (backend: StuckBackend) => void;
}

export function openInspector({ sourceUrls, writerUrl, canPull, timeoutMs, onStuck }: InspectorConfig): Inspector {
  const applicationName = "vitrina api inspect";
  const postgres = openTargetInspector({ url: writerUrl, applicationName, timeoutMs, canPull });
  return {
    source(connection) {
      const url = sourceUrls.get(connection);
      return url === undefined ? undefined : openSourceInspector({ url, applicationName, timeoutMs, onStuck });
    },
    target: (kind) => (kind === "postgres" ? postgres : undefined),
  };
}
