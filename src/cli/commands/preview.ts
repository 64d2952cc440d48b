import type { Command } from "commander";
import type { ApiAnswer } from "../api-client.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { limitOf } from "./runs.ts";

interface PreviewOptions {
  readonly query?: string;
  readonly connection?: string;
  readonly limit: number;
}

export function addPreviewCommand(program: Command): void {
  program
    .command("preview")
    .argument("[name]", "name or id of a pipeline")
    .description("show the first rows that a pipeline, or a query, would read")
    .option("--query <sql>", "a query instead of a pipeline's")
    .option("--connection <name>", "source connection of the query (default: main)")
    .option("--limit <number>", "at most this many, up to 200", limitOf, 20)
    .action(withCli(preview));
}

async function preview(cli: Cli, id: string | undefined, options: PreviewOptions): Promise<void> {
  const answer = await rowsOf(cli, id, options);
  cli.show(answer, () => rowTable(answer));
  if (!cli.isJson && !answer.complete) cli.terminal.say("There are more rows.");
}

function rowsOf({ api }: Cli, id: string | undefined, options: PreviewOptions): Promise<ApiAnswer<"previewQuery">> {
  const { query, connection, limit } = options;
  if (id !== undefined && query === undefined && connection === undefined) {
    return api.request("previewPipeline", { params: { id }, query: { limit } });
  }
  if (id !== undefined || query === undefined) {
    throw new CliFailure(EXIT.usage, "Give either the name of a pipeline or a query with --query.");
  }
  const body = { source_query: query, limit, ...(connection !== undefined && { source_connection: connection }) };
  return api.request("previewQuery", { body });
}

function rowTable({ columns, rows, cut }: ApiAnswer<"previewQuery">): Table {
  const isCut = new Set(cut.map(({ row, column }) => `${row} ${column}`));
  return {
    columns: columns.map(({ name }) => ({ title: name })),
    rows: rows.map((row, y) => row.map((value, x) => (value ?? "NULL") + (isCut.has(`${y} ${x}`) ? "…" : ""))),
    whenEmpty: "The query returns no rows.",
  };
}
