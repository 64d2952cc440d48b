import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Sink } from "../sink.ts";
import { type ClusterConfig, openClient, type SearchClient } from "./client.ts";
import { type Cluster, patientCluster } from "./cluster.ts";
import { openIndexComparison, requireLive } from "./comparison.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import type { Dialect } from "./field-types.ts";
import { impatientCluster } from "./impatient-cluster.ts";
import { indexDefinition } from "./index-definition.ts";
import { readFamily } from "./index-family.ts";
import { indexWriter } from "./index-writer.ts";
import type { IndexOptions } from "./options.ts";
import { Patience } from "./patience.ts";
import { openPointInTime } from "./point-in-time.ts";
import { restorePrevious } from "./restore-previous.ts";
import type { IndexTarget } from "./target.ts";
import { dropLoadsOf, tidyFamily } from "./tidy-family.ts";

export interface ElasticsearchSinkConfig extends ClusterConfig {
  /** How long a run waits for a cluster that is down or overloaded, before its attempt fails. */
  readonly patienceMs: number;
}

/** For what needs no lease. */
const NEVER = new AbortController().signal;

/** Elasticsearch and OpenSearch; they differ in the name of one type. */
export function openElasticsearchSink(config: ElasticsearchSinkConfig): Sink<IndexTarget, IndexOptions> {
  let opened: SearchClient | undefined;
  let dialect: Dialect | undefined;

  const connect = (target: IndexTarget, lost: AbortSignal) => {
    if (config.urls.length === 0) {
      throw new VitrinaError(
        SEARCH_ERRORS.SEARCH_NOT_CONFIGURED,
        `es:${target.index} cannot be written without a search cluster.`,
      );
    }
    opened ??= openClient(config);
    const patience = new Patience(config.patienceMs, lost);
    return { client: opened, name: target.index, patience, cluster: patientCluster(opened, patience) };
  };

  return {
    async open(request) {
      const connection = connect(request.target, request.lost);
      dialect ??= await askDialect(connection.cluster);
      const definition = indexDefinition(request.columns, request.options, dialect);
      const family = await readFamily(connection.cluster, connection.name);
      return indexWriter({ ...connection, request, definition, family });
    },

    async openComparison(request) {
      const { client, name, cluster } = connect(request.target, NEVER);
      dialect ??= await askDialect(cluster);
      const family = await readFamily(cluster, name);
      const point = await openPointInTime(client, cluster, dialect, requireLive(family));
      try {
        return openIndexComparison(point, family, request);
      } catch (error) {
        await point.close();
        throw error;
      }
    },

    async clearAway({ target, pipelineId, options, isShared }) {
      const { client, name } = connect(target, NEVER);
      const cluster = impatientCluster(client, NEVER);
      await dropLoadsOf(cluster, name, pipelineId);
      return isShared ? null : tidyFamily(cluster, name, options);
    },

    async restorePrevious(request) {
      const { client, name, cluster } = connect(request.target, request.lost);
      await restorePrevious(client, cluster, name, request);
    },
  };
}

async function askDialect(cluster: Cluster): Promise<Dialect> {
  // Elasticsearch may hide this from some logins, and its smallest distribution hides it from all.
  const { body } = await cluster.ask("reach the search cluster", { method: "GET", path: "/" }, [403, 405]);
  const { distribution } = (body as { version?: { distribution?: string } } | undefined)?.version ?? {};
  return distribution === "opensearch" ? "opensearch" : "elasticsearch";
}
