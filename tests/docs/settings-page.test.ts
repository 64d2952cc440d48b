import { readdir, readFile, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { SinkDescription } from "../../src/connectors/description.ts";
import { CONNECTORS } from "../../src/connectors/registry.ts";
import { loadCliSettings } from "../../src/settings/cli-settings.ts";
import { parseSettings } from "../../src/settings/settings.ts";
import { expectGenerated, markdownTable } from "../support/generated-page.ts";

const PAGE = new URL("../../docs/SETTINGS.md", import.meta.url);
const SAMPLE = new URL("../../.env.sample", import.meta.url);
const SOURCES = new URL("../../src/settings/", import.meta.url);
/** One is for tests of crashes only, and the other belongs to the terminal. */
const NOT_FOR_USERS = ["TERM", "VITRINA_FAULT"];

/** Settings that one comment describes. */
interface Group {
  readonly settings: readonly { readonly name: string; readonly value: string }[];
  readonly meaning: string;
  /** True when the values that are shown are the defaults. */
  readonly showsDefaults: boolean;
}

/** A comment belongs to the settings below it; a line `# --- Title ---` begins a section. */
async function readSample(): Promise<{ title: string; groups: Group[] }[]> {
  const [, ...sections] = (await readFile(SAMPLE, "utf8")).split(/^# --- (?=\w)/m);
  return sections.map((section) => {
    const [title = "", ...paragraphs] = section.split(/ -+\n|\n\n+/);
    return { title, groups: paragraphs.map(groupOf).filter(({ settings }) => settings.length > 0) };
  });
}

function groupOf(paragraph: string): Group {
  const lines = paragraph.trim().split("\n");
  const meaning = lines.flatMap((line) => /^# (.+)$/.exec(line)?.[1] ?? []).join(" ");
  const settings = lines.flatMap((line) => {
    const [, name, value] = /^#([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [{ name, value }];
  });
  return { settings, meaning, showsDefaults: !/\bNo default\b|\bDefault: /i.test(meaning) };
}

const allGroups = async (): Promise<Group[]> => (await readSample()).flatMap(({ groups }) => groups);

describe("docs/SETTINGS.md", () => {
  it("tells what .env.sample tells (UPDATE_DOCS=1 rewrites it)", async () => {
    const code = (texts: readonly string[]): string => texts.map((text) => `\`${text}\``).join(", ");
    const parts = (await readSample()).map(({ title, groups }) => {
      const rows = groups.map(({ settings, meaning, showsDefaults }) => [
        code(settings.map(({ name }) => name)),
        showsDefaults ? code(settings.map(({ value }) => value)) : "–",
        meaning.replaceAll("<", "&lt;"),
      ]);
      return `\n## ${title}\n\n${markdownTable(["setting", "default", "meaning"], rows)}`;
    });
    await expectGenerated(PAGE, `${parts.join("")}\n`);
  });
});

describe(".env.sample", () => {
  it("has every setting that the program reads, and no other", async () => {
    const files = await readdir(SOURCES);
    const code = (await Promise.all(files.map((file) => readFile(new URL(file, SOURCES), "utf8")))).join("\n");
    const read = [...code.matchAll(/^ {2}([A-Z][A-Z0-9_]+): /gm)].map(([, name]) => name);
    const listed = (await allGroups()).flatMap(({ settings }) => settings.map(({ name }) => name));
    const ofConnectors = CONNECTORS.sinks.flatMap(({ settings }) => Object.keys(settings.fields));
    const ofSources = ["SOURCE_UGC_URL", "SOURCE_UGC_CHANGES", "SOURCE_UGC_SLOT_KEEP_MIB"];
    const known = [...read.filter((name) => !NOT_FOR_USERS.includes(String(name))), ...ofConnectors, ...ofSources];
    expect([...listed].sort()).toEqual(known.sort());
  });

  it("has the sections of the connectors as they describe themselves (UPDATE_DOCS=1 rewrites them)", async () => {
    const sample = await readFile(SAMPLE, "utf8");
    const written = CONNECTORS.sinks.reduce((text, { settings }) => withSection(text, settings), sample);
    if (process.env["UPDATE_DOCS"] === "1") await writeFile(SAMPLE, written);
    else expect(sample).toBe(written);
  });

  it("shows the defaults as they are", async () => {
    const defaults = (await allGroups()).flatMap(({ settings, showsDefaults }) => (showsDefaults ? settings : []));
    expect(defaults.length).toBeGreaterThan(20);
    const shown = Object.fromEntries(defaults.map(({ name, value }) => [name, value]));
    // Some settings are only accepted beside others, and some defaults only hold with a login.
    const login = {
      API_AUTH: "required",
      JWT_ISSUER: "https://login.example.com",
      JWT_AUDIENCE: "vitrina",
      JWT_JWKS_URL: "https://login.example.com/keys",
    };
    expect(comparable({ ...shown, ...login })).toEqual(comparable(login));
    expect(shown["API_AUTH"]).toBe("none");
    expect(parseSettings({}, "/").api.loginRequired).toBe(false);
    expect(loadCliSettings(shown, "/nowhere")).toEqual(loadCliSettings({}, "/nowhere"));
  });
});

function comparable(environment: Record<string, string>): object {
  const {
    databaseUrls: _urls,
    targets: _targets,
    sources: _sources,
    tasks,
    ...settings
  } = parseSettings(environment, "/");
  return { ...settings, tasks: { ...tasks, environment: {} } };
}

/** With the section as it is described; a new one comes before that of the API. */
function withSection(sample: string, { section, sample: text }: SinkDescription["settings"]): string {
  const head = `# --- ${section} `.padEnd(102, "-");
  const [before = "", after] = sample.split(`${head}\n`);
  if (after === undefined) return sample.replace(/^(?=# --- API -)/m, `${head}\n\n${text}\n`);
  const next = after.search(/^# --- /m);
  return `${before}${head}\n\n${text}\n${next === -1 ? "" : after.slice(next)}`;
}
