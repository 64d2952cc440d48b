import { randomUUID } from "node:crypto";
import type { IndexOptions } from "../../src/connectors/elasticsearch/options.ts";
import { openElasticsearchSink } from "../../src/connectors/elasticsearch/sink.ts";
import type { SinkRequest, SinkWriter } from "../../src/connectors/sink.ts";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";

export interface SearchLoad {
  readonly url: string;
  readonly index: string;
  readonly load: SinkRequest["load"];
  readonly options?: IndexOptions;
  readonly requestTimeoutMs?: number;
}

/** Claims of one pipeline, each as if a runner had taken it over from the one before. */
export function searchClaims(): (load: SearchLoad) => Promise<SinkWriter> {
  const pipelineId = randomUUID();
  let latest = 0;
  return async ({ url, index, load, options = {}, requestTimeoutMs = 60_000 }) => {
    latest += 1;
    const epoch = latest;
    const sink = openElasticsearchSink({
      urls: [url],
      apiKey: undefined,
      user: undefined,
      password: undefined,
      caFile: undefined,
      requestTimeoutMs,
      patienceMs: 30_000,
    });
    return sink.open({
      target: { kind: "elasticsearch", index },
      columns: [
        { name: "id", type: "bigint" },
        { name: "title", type: "text" },
      ],
      key: ["id"],
      createTarget: true,
      addColumns: false,
      load,
      options,
      claim: { pipelineId, runId: randomUUID(), epoch, decidedEpoch: 0, batchNo: 0 },
      isMetaStore: async () => false,
      lost: new AbortController().signal,
      cancelled: new AbortController().signal,
      requireLease: async () => {
        if (epoch !== latest) throw new VitrinaError("LEASE_LOST", "Another claim was made.");
      },
    });
  };
}
