import { resolve } from "node:path";
import { z } from "zod";
import { commaList, isHttpUrl, wholeNumber } from "../../domain/setting-fields.ts";
import { type ConnectorSettings, defineSink } from "../description.ts";
import { matchesPattern } from "../targets.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import { indexOptions, mergeProblems } from "./options.ts";
import type { ElasticsearchSinkConfig } from "./sink.ts";
import { isOwnAlias, parseIndex } from "./target.ts";

interface SearchSettings extends ElasticsearchSinkConfig {
  /** Exact names of indexes, or patterns in which `*` stands for any characters. */
  readonly indexes: readonly string[];
}

const fields = {
  TARGET_INDEXES: commaList.default([]),
  ELASTICSEARCH_URL: commaList
    .refine((urls) => urls.every(isHttpUrl), "is not a list of http or https URLs, separated by commas")
    .default([]),
  ELASTICSEARCH_API_KEY: z.string().optional(),
  ELASTICSEARCH_USER: z.string().optional(),
  ELASTICSEARCH_PASSWORD: z.string().optional(),
  ELASTICSEARCH_CA_FILE: z.string().optional(),
  ELASTICSEARCH_TIMEOUT_SECONDS: wholeNumber(1, 600).default(30),
  ELASTICSEARCH_PATIENCE_SECONDS: wholeNumber(0, 3600).default(60),
};

const settings: ConnectorSettings<SearchSettings, typeof fields> = {
  section: "Search cluster",
  sample: `# Search indexes that pipelines may write, as es:<index>, with * as a wildcard. Default: none.
#TARGET_INDEXES=films,mart_*

# Elasticsearch (8, 9) or OpenSearch (2, 3), for the runner: one URL, or those of several nodes, separated by commas.
# No default: then es:<index> cannot be written.
#ELASTICSEARCH_URL=https://search-1:9200,https://search-2:9200

# How to log in: an API key (as it is sent, base64), or user and password. No default.
#ELASTICSEARCH_API_KEY=
#ELASTICSEARCH_USER=
#ELASTICSEARCH_PASSWORD=

# File with the certificate of the authority that signed the cluster's certificates. Default: those of Node.js.
#ELASTICSEARCH_CA_FILE=

# How long one request may take, 1 to 600, and how long a run waits for a cluster that is away or overloaded, 0 to 3600.
#ELASTICSEARCH_TIMEOUT_SECONDS=30
#ELASTICSEARCH_PATIENCE_SECONDS=60
`,
  fields,
  read: (env, folder) => ({
    indexes: env.TARGET_INDEXES,
    urls: env.ELASTICSEARCH_URL,
    apiKey: env.ELASTICSEARCH_API_KEY,
    user: env.ELASTICSEARCH_USER,
    password: env.ELASTICSEARCH_PASSWORD,
    caFile: env.ELASTICSEARCH_CA_FILE === undefined ? undefined : resolve(folder, env.ELASTICSEARCH_CA_FILE),
    requestTimeoutMs: env.ELASTICSEARCH_TIMEOUT_SECONDS * 1000,
    patienceMs: env.ELASTICSEARCH_PATIENCE_SECONDS * 1000,
  }),
};

/** Elasticsearch and OpenSearch. */
export const elasticsearchSink = defineSink({
  kind: "elasticsearch",
  noun: "an index",
  prefix: "es:",
  form: "<index>",
  parse: parseIndex,
  format: ({ index }) => index,
  allowList: {
    allows: ({ index }, { indexes }) => indexes.some((pattern) => matchesPattern(index, pattern)),
    list: ({ indexes }) => indexes,
    isOwn: isOwnAlias,
    pattern: /^[^:]+$/,
  },
  settings,
  options: indexOptions,
  optionProblems: mergeProblems,
  errors: SEARCH_ERRORS,
  can: { takesBytes: false, keepsPrevious: true },
  isConfigured: ({ urls }) => urls.length > 0,
  open: async (config) => {
    const { openElasticsearchSink } = await import("./sink.ts");
    return openElasticsearchSink(config);
  },
});
