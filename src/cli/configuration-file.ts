import { existsSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Input } from "./api-client.ts";
import { CliFailure, EXIT } from "./failure.ts";

export type Configuration = Input<"createPipeline">["body"];

export const FILE_HELP = "YAML or JSON: one configuration, or a list of them under pipelines";

/** What is in them the API checks. */
export function readConfigurations(file: string): Configuration[] {
  if (!existsSync(file)) throw new CliFailure(EXIT.failed, `There is no file ${file}.`);
  let content: unknown;
  try {
    content = parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CliFailure(EXIT.failed, `${file} cannot be read: ${(error as Error).message}`);
  }
  const { pipelines } = (content ?? {}) as { pipelines?: unknown };
  return (Array.isArray(pipelines) ? pipelines : [content]) as Configuration[];
}
