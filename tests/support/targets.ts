import { CONNECTORS } from "../../src/connectors/registry.ts";
import { openTargets, type Targets } from "../../src/connectors/targets.ts";
import type { Target } from "../../src/domain/target.ts";

interface Allowed {
  readonly schemas: readonly string[];
  readonly indexes: readonly string[];
  readonly only?: readonly string[];
}

/** As the settings TARGET_SCHEMAS, TARGET_INDEXES and TARGETS would say it; here also with nothing in them. */
export function targetsWithin({ schemas, indexes, only }: Allowed): Targets {
  const sinks = CONNECTORS.sinks.map((description) => ({ description, settings: { schemas, indexes, urls: [] } }));
  return openTargets(sinks, only);
}

const ANY = targetsWithin({ schemas: [], indexes: [] });

export const parseTarget = (text: string): Target => ANY.parse(text);
export const formatTarget = (target: Target): string => ANY.format(target);
