import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Document, LineCounter } from "yaml";
import type { Input } from "./api-client.ts";
import { CliFailure, EXIT } from "./failure.ts";

type Configuration = Input<"createPipeline">["body"];

/** A configuration, and where it was written. The API checks its contents. */
export interface WrittenConfiguration {
  readonly configuration: Configuration;
  /** For people, even if the file gives it no valid name. */
  readonly name: string;
  /** `file:line` of a field by its JSON pointer, or of the nearest one that exists; `line` counts within its text. */
  placeOf(pointer: string, line?: number): string;
}

export const FILE_HELP =
  "YAML or JSON: one configuration or several, as a list, under pipelines, or as documents; or folders of such files";

/** From all the files, in the given order; a folder is read recursively, by file name. */
export async function readConfigurations(paths: readonly string[]): Promise<WrittenConfiguration[]> {
  // Only here: the other commands need no YAML.
  const yaml = await import("yaml");
  const found = paths.flatMap(filesOf).flatMap((file) => readFile(yaml, file));
  if (found.length > 0) return found;
  throw new CliFailure(EXIT.failed, `There is no configuration in ${paths.join(", ")}.`);
}

function filesOf(path: string): string[] {
  if (!existsSync(path)) throw new CliFailure(EXIT.failed, `There is no file ${path}.`);
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true })
    .map((name) => join(path, String(name)))
    .filter((file) => /\.(?:ya?ml|json)$/.test(file) && statSync(file).isFile())
    .sort();
}

type Yaml = typeof import("yaml");
type Path = readonly (string | number)[];

function readFile(yaml: Yaml, file: string): WrittenConfiguration[] {
  const lines = new yaml.LineCounter();
  const documents = yaml.parseAllDocuments(readFileSync(file, "utf8"), { lineCounter: lines });
  return [...documents].flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new CliFailure(EXIT.failed, `${file} cannot be read: ${error.message}`);
    const content: unknown = document.toJS();
    const { pipelines } = (content ?? {}) as { pipelines?: unknown };
    const list = Array.isArray(content) ? content : pipelines;
    const before: Path = Array.isArray(content) ? [] : ["pipelines"];
    if (Array.isArray(list)) {
      return list.map((one, place) => written(yaml, file, document, lines, [...before, place], one));
    }
    return content === null || content === undefined ? [] : [written(yaml, file, document, lines, [], content)];
  });
}

function written(
  yaml: Yaml,
  file: string,
  document: Document,
  lines: LineCounter,
  path: Path,
  content: unknown,
): WrittenConfiguration {
  const { name } = (content ?? {}) as { name?: unknown };
  return {
    configuration: content as Configuration,
    name: typeof name === "string" && name !== "" ? name : "without a name",
    placeOf(pointer, line) {
      const node = nearestNode(yaml, document, [...path, ...fieldsOf(pointer)]);
      if (node?.range == null) return file;
      const start = lines.linePos(node.range[0]).line;
      // The text of a block begins on the line below its |.
      const isBlock = yaml.isScalar(node) && node.type === yaml.Scalar.BLOCK_LITERAL;
      return `${file}:${isBlock && line !== undefined ? start + line : start}`;
    },
  };
}

function nearestNode({ isNode }: Yaml, document: Document, path: Path) {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node)) return node;
  }
  return undefined;
}

/** RFC 6901. */
function fieldsOf(pointer: string): Path {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}
