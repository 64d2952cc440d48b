import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Registry } from "prom-client";
import type { Inspector } from "../connectors/inspector.ts";
import type { Targets } from "../connectors/targets.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import type { ApiSettings } from "../settings/api-settings.ts";
import type { Limited } from "./concurrency-limit.ts";

/** A Fastify instance whose schemas are zod schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the routes work with; each takes the parts it needs. */
export interface ApiParts {
  readonly store: MetaStore;
  readonly targets: Targets;
  readonly inspector: Inspector;
  readonly previewTimeoutMs: number;
  readonly log: Log;
  readonly api: ApiSettings;
  readonly version: string;
  /** Shown at /metrics, with whatever else the process counts in it. */
  readonly registry: Registry;
  /** Limits how many requests ask a source at once about a query that is being saved. */
  readonly asking: Limited;
}
