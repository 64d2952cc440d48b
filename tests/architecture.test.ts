import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { CONNECTORS } from "../src/connectors/registry.ts";

/** Who may import whom, as in ARCHITECTURE.md: a folder of src, a folder in it, or a single file. */
const ALLOWED: Record<string, readonly string[]> = {
  domain: [],
  observability: ["domain"],
  settings: ["domain", "connectors/registry.ts", "connectors/targets.ts"],
  postgres: ["domain"],
  "sql-guard": ["domain"],
  "sql-analysis": ["domain", "sql-guard", "postgres/identifiers.ts"],
  "embedded-postgres": ["domain"],
  "meta-store": ["domain", "observability", "postgres"],
  tasks: ["domain", "observability"],
  connectors: ["domain", "observability", "postgres", "sql-guard", "sql-analysis"],
  "control-plane": [
    "domain",
    "meta-store/meta-store.ts",
    "meta-store/ports",
    "connectors/inspector.ts",
    "connectors/targets.ts",
    "observability",
    "settings",
  ],
  "data-plane": [
    "domain",
    "meta-store/meta-store.ts",
    "meta-store/ports",
    "connectors",
    "tasks",
    "observability",
    "postgres",
    "settings",
  ],
  cli: ["settings", "domain/counted.ts"],
  main: [
    "cli",
    "domain",
    "observability",
    "settings",
    "postgres",
    "embedded-postgres",
    "meta-store",
    "connectors",
    "tasks",
    "control-plane",
    "data-plane",
  ],
};

const SRC = fileURLToPath(new URL("../src", import.meta.url));

const files = readdirSync(SRC, { recursive: true })
  .map(String)
  .filter((file) => file.endsWith(".ts"));

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, path]) =>
    relative(SRC, join(SRC, dirname(file), path as string)),
  );
}

const folderOf = (file: string): string => file.split("/")[0] as string;

describe("the import table", () => {
  it("names every folder of src", () => {
    expect([...new Set(files.map(folderOf))].sort()).toEqual(Object.keys(ALLOWED).sort());
  });

  it.each(Object.keys(ALLOWED))("%s imports only what it may", (folder) => {
    const allowed = ALLOWED[folder] ?? [];
    const forbidden = files
      .filter((file) => folderOf(file) === folder)
      .flatMap((file) => importsOf(file).map((target) => ({ file, target })))
      .filter(({ target }) => folderOf(target) !== folder)
      .filter(({ target }) => ![folderOf(target), dirname(target), target].some((place) => allowed.includes(place)));
    expect(forbidden).toEqual([]);
  });

  it("finds imports at all", () => {
    expect(importsOf("main/program.ts").length).toBeGreaterThan(5);
  });
});

describe("knots", () => {
  it("no files import one another, over any number of steps, not even for their types", () => {
    expect(knotted(files)).toEqual([]);
  });

  it("finds a knot", () => {
    const files = ["a", "b", "c", "d", "e"];
    const imports: Record<string, string[]> = { a: ["b"], b: ["c"], c: ["d", "e"], d: ["b"], e: [] };
    expect(knotted(files, (file) => imports[file] ?? [])).toEqual(["b", "c", "d"]);
  });
});

/** What is left when files that import none of the others, or that none of the others imports, are taken away. */
function knotted(
  among: readonly string[],
  imports: (file: string) => readonly string[] = importsOf,
): readonly string[] {
  const targets = new Map(among.map((file) => [file, imports(file).filter((target) => among.includes(target))]));
  const imported = new Set([...targets.values()].flat());
  const left = among.filter((file) => imported.has(file) && targets.get(file)?.length !== 0);
  return left.length === among.length ? left : knotted(left, imports);
}

describe("names", () => {
  /** Made from the OpenAPI document, where a pipeline and a run are called as they are called in the domain. */
  const MADE = ["cli/api-types.ts"];

  it("no two interfaces, types or classes have the same name", () => {
    const filesOf = new Map<string, string[]>();
    for (const file of files.filter((one) => !MADE.includes(one))) {
      const text = readFileSync(join(SRC, file), "utf8");
      for (const [, name = ""] of text.matchAll(/^(?:export )?(?:abstract )?(?:interface|type|class) (\w+)/gm)) {
        filesOf.set(name, [...(filesOf.get(name) ?? []), file]);
      }
    }
    expect(filesOf.size).toBeGreaterThan(300);
    expect([...filesOf].filter(([, where]) => where.length > 1)).toEqual([]);
  });

  it("a limit says of what it is the limit", () => {
    const bare =
      /^(?:export )?const ((?:MOST|LEAST|LONGEST|MAX|MIN|LIMIT|TIMEOUT|PATIENCE|ATTEMPTS|PAGE)(?:_(?:MS|SECONDS|BYTES|SIZE))?) =/gm;
    const found = files.flatMap((file) =>
      [...readFileSync(join(SRC, file), "utf8").matchAll(bare)].map(([, name]) => `${file} ${name}`),
    );
    expect(found).toEqual([]);
  });
});

describe("habits", () => {
  const textOf = (file: string): string => readFileSync(join(SRC, file), "utf8");

  it("only settings reads the environment", () => {
    expect(files.filter((file) => textOf(file).includes("process.env") && folderOf(file) !== "settings")).toEqual([]);
  });

  it("the runner knows nothing of HTTP, and the domain nothing of drivers", () => {
    const importing = (folder: string, pattern: RegExp): string[] =>
      files.filter((file) => folderOf(file) === folder && pattern.test(textOf(file)));
    expect(importing("data-plane", /from "(fastify|node:http)/)).toEqual([]);
    expect(importing("domain", /from "(pg|node:fs|node:net|fastify)/)).toEqual([]);
  });

  it("sessions are opened in one place, which gives each of them the search path of its own", () => {
    const opening = files.filter((file) => /new (pg\.)?(Client|Pool)\(/.test(textOf(file)));
    expect(opening.sort()).toEqual([
      "embedded-postgres/ensure-database.ts",
      "postgres/connection.ts",
      "postgres/session.ts",
    ]);
    expect(textOf("embedded-postgres/ensure-database.ts")).toContain('"-c search_path=pg_catalog,pg_temp"');
    expect(textOf("postgres/connection.ts").match(/takeSession\(client, config, .*settings\)/g)).toHaveLength(2);
  });

  it("SQL takes the statuses of pipelines from the status machine", () => {
    const literal = /'(IDLE|RUN_REQUESTED|PAUSE_REQUESTED|CANCEL_REQUESTED)'/;
    expect(files.filter((file) => file.startsWith("meta-store/postgres/") && literal.test(textOf(file)))).toEqual([]);
  });

  it("no mart of the demo is named in the sources", () => {
    expect(files.filter((file) => /film_dim|film_rating|genre_dim|film_work/.test(textOf(file)))).toEqual([]);
  });
});

describe("a connector is known only to itself", () => {
  const outside = files.filter((file) => folderOf(file) !== "connectors");
  const textOf = (file: string): string => readFileSync(join(SRC, file), "utf8");
  const kinds = [...CONNECTORS.sources, ...CONNECTORS.sinks].map(({ kind }) => kind);

  it("nobody else asks for the kind of a target or a source", () => {
    const compared = new RegExp(
      [
        String.raw`\b\w*([Tt]arget|[Ss]ink|[Ss]ource)\w*(\?)?\.kind\s*[!=]==?`,
        String.raw`\b(source_type|targetKind|sourceKind)\s*[!=]==?`,
        String.raw`([!=]==?|\bcase)\s*"(${kinds.join("|")})"`,
      ].join("|"),
    );
    expect('target.kind !== "x" target?.kind === y case "postgres"').toMatch(compared);
    expect(outside.filter((file) => compared.test(textOf(file)))).toEqual([]);
  });

  it("nobody else knows the codes of its errors", () => {
    const codes = CONNECTORS.sinks.flatMap(({ errors }) => Object.keys(errors));
    expect(codes.length).toBeGreaterThan(10);
    const named = new RegExp(String.raw`\b(${codes.join("|")})\b`);
    expect(outside.filter((file) => named.test(textOf(file)))).toEqual([]);
  });

  it("its description loads no driver, and nothing else of it", () => {
    const loaded = new Set(["connectors/registry.ts"]);
    const packages = new Set<string>();
    for (const file of loaded) {
      const imports = textOf(file).matchAll(/^import (?!type )[^;]*?from "([^"]+)"/gm);
      for (const [, path = ""] of imports) {
        if (path.startsWith(".")) loaded.add(relative(SRC, join(SRC, dirname(file), path)));
        else packages.add(path);
      }
    }
    const described = /^connectors\/(\w+|\w+\/(description|errors|options|target))\.ts$|^domain\//;
    expect([...loaded].filter((file) => !described.test(file))).toEqual([]);
    expect([...packages].filter((name) => !["zod", "node:path"].includes(name))).toEqual([]);
    expect(loaded.size).toBeGreaterThan(10);
  });
});
