import { isPostgresUrl, schemaList } from "../../domain/setting-fields.ts";
import { type ConnectorSettings, defineSink, type SourceDescription } from "../description.ts";
import { TABLE_ERRORS } from "./errors.ts";
import { foldedName, formatIdentifier, formatTable, isOwnTable, parseTable } from "./target.ts";

interface TableSettings {
  readonly schemas: readonly string[];
}

const fields = { TARGET_SCHEMAS: schemaList.default(["analytics"]) };

const settings: ConnectorSettings<TableSettings, typeof fields> = {
  section: "Tables as targets",
  sample: `# Schemas that pipelines may write. Grant vitrina_writer USAGE and CREATE on any other than analytics. Separate names
# by commas; one may be quoted as in SQL.
#TARGET_SCHEMAS=analytics
`,
  fields,
  read: ({ TARGET_SCHEMAS: schemas }) => ({ schemas }),
};

export const postgresSink = defineSink({
  kind: "postgres",
  noun: "a table",
  prefix: "",
  form: "<schema>.<table>, e.g. analytics.films",
  parse: parseTable,
  format: formatTable,
  remarksOn: foldedName,
  allowList: {
    allows: ({ schema }, { schemas }) => schemas.includes(schema),
    list: ({ schemas }) => schemas.map((schema) => `${formatIdentifier(schema)}.<table>`),
    isOwn: isOwnTable,
    pattern: /^[^:]+\.[^:]+$/,
  },
  settings,
  errors: TABLE_ERRORS,
  can: { takesBytes: true, keepsPrevious: false },
  // It has at least the database that Vitrina itself keeps its tables in.
  isConfigured: () => true,
  open: async (_, { writerUrl, ...surroundings }) => {
    const { openPostgresSink } = await import("./sink.ts");
    return openPostgresSink({ url: writerUrl, ...surroundings });
  },
  inspect: async (_, { writerUrl, loaderUrl, applicationName, timeoutMs }) => {
    const { openTargetInspector } = await import("./target-inspector.ts");
    return openTargetInspector({ url: writerUrl, applicationName, timeoutMs, canPull: loaderUrl !== undefined });
  },
});

export const postgresSource: SourceDescription = {
  kind: "postgres",
  form: "a PostgreSQL URL (postgres://user:password@host:5432/db)",
  accepts: isPostgresUrl,
  async checkQuery(query, rules) {
    const { checkQuery } = await import("../../sql-guard/guard.ts");
    await checkQuery(query, rules);
  },
  async namedTables(query) {
    const { namedTables } = await import("./tables-read.ts");
    return namedTables(query);
  },
  async open(url, surroundings) {
    const { openPostgresSource } = await import("./source.ts");
    return openPostgresSource({ url, ...surroundings });
  },
  async inspect(url, surroundings) {
    const { openSourceInspector } = await import("./source-inspector.ts");
    return openSourceInspector({ url, ...surroundings });
  },
};
