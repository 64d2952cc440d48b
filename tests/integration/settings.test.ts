import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadSettings, parseSettings } from "../../src/settings/settings.ts";

const ADMIN = "postgres://admin:s3cret@db.example:5433/cinema?sslmode=require";

describe("settings", () => {
  it("have the documented defaults", () => {
    const settings = parseSettings({}, "/work-folder");
    expect(settings).toMatchObject({
      databaseUrl: undefined,
      dataDir: "/work-folder/.vitrina",
      api: { host: "127.0.0.1", port: 8000 },
      sourceSchemas: ["content", "ugc"],
      sinks: [{ settings: { schemas: ["analytics"] } }, { settings: { indexes: [], urls: [] } }],
      metrics: { host: "127.0.0.1", port: undefined },
    });
  });

  it.each([
    ["content, Odd Shop.v1", ["content", "Odd Shop.v1"]],
    ['"content","Odd ""Shop"", v1" , ugc', ["content", 'Odd "Shop", v1', "ugc"]],
  ])("take schemas as they are, or quoted as in SQL: %s", (written, schemas) => {
    const settings = parseSettings({ SOURCE_SCHEMAS: written, TARGET_SCHEMAS: written }, "/");
    expect(settings.sourceSchemas).toEqual(schemas);
    expect(settings.sinks[0]).toMatchObject({ settings: { schemas } });
  });

  it.each(["content,", ",content", "a,,b", '"content', 'con"tent', '"a"b', '""', ","])(
    "refuse what is no list of schemas: %s",
    (written) => {
      expect(() => parseSettings({ SOURCE_SCHEMAS: written }, "/")).toThrow("SOURCE_SCHEMAS is not a list of schemas");
    },
  );

  it("take a port for the metrics of a runner, or say what is wrong with it", () => {
    const given = parseSettings({ METRICS_PORT: "9464", METRICS_HOST: "0.0.0.0" }, "/");
    expect(given.metrics).toEqual({ host: "0.0.0.0", port: 9464 });
    expect(() => parseSettings({ METRICS_PORT: "65536" }, "/")).toThrow("METRICS_PORT is not between 0 and 65535");
  });

  it("turn tracing on where a collector is named, and only there", () => {
    const tracing = (environment: Record<string, string>) => parseSettings(environment, "/").tracing;
    expect(tracing({ OTEL_SERVICE_NAME: "marts" })).toBeUndefined();
    expect(tracing({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" })).toEqual({
      url: "http://collector:4318/v1/traces",
      headers: {},
      serviceName: "vitrina",
    });
    const whole = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example/in",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20s3cret%3D, x-team=cinema",
      OTEL_SERVICE_NAME: "marts",
    };
    expect(tracing(whole)).toEqual({
      url: "https://traces.example/in",
      headers: { authorization: "Bearer s3cret=", "x-team": "cinema" },
      serviceName: "marts",
    });
    const mistaken = () => tracing({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector", OTEL_EXPORTER_OTLP_HEADERS: "s3cret" });
    expect(mistaken).toThrow(/OTEL_EXPORTER_OTLP_ENDPOINT .*\n.*OTEL_EXPORTER_OTLP_HEADERS/);
    expect(mistaken).not.toThrow("s3cret");
  });

  it("name every mistake at once, and never the value of a secret", () => {
    const mistakes = () =>
      parseSettings(
        {
          API_PORT: "http",
          API_HOST: "0.0.0.0",
          DATABASE_URL: "mysql://u:s3cret@h/d",
          LEASE_SECONDS: "1",
          SOURCE_UGC_URL: "nonsense-s3cret",
          LOG_LEVEL: "loud",
        },
        "/",
      );
    expect(mistakes).toThrow(/API_PORT .*\n(.*\n)*.*API_HOST/);
    for (const name of ["API_PORT", "API_HOST", "DATABASE_URL", "LEASE_SECONDS", "SOURCE_UGC_URL", "LOG_LEVEL"]) {
      expect(mistakes).toThrow(name);
    }
    expect(mistakes).not.toThrow("s3cret");
  });

  it("come from .env, and the environment wins", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vitrina-settings-"));
    await writeFile(join(folder, ".env"), "API_PORT=8001\nAPI_HOST=127.0.0.2\n# a comment\nLOG_LEVEL=\n");
    const settings = loadSettings({ API_PORT: "8002" }, folder);
    expect(settings).toMatchObject({ api: { host: "127.0.0.2", port: 8002 }, logLevel: "info" });
    await rm(folder, { recursive: true });
  });

  it("give each role a URL of its own on the same server, with a password only the administrator can derive", () => {
    const urls = parseSettings({ DATABASE_URL: ADMIN }, "/").databaseUrls();
    const other = parseSettings({ DATABASE_URL: ADMIN.replace("s3cret", "another") }, "/").databaseUrls();
    expect(urls.reader).toMatch(/^postgres:\/\/vitrina_reader:[\w-]{43}@db\.example:5433\/cinema\?sslmode=require$/);
    expect(new Set([urls.reader, urls.writer, urls.meta].map((url) => new URL(url).password)).size).toBe(3);
    expect(urls.reader).toBe(parseSettings({ DATABASE_URL: ADMIN }, "/").databaseUrls().reader);
    expect(urls.reader).not.toBe(other.reader);
  });

  it("take the roles' URLs as given, without an administrator", () => {
    const given = { META_DATABASE_URL: ADMIN, READER_DATABASE_URL: ADMIN, WRITER_DATABASE_URL: ADMIN };
    expect(parseSettings(given, "/").databaseUrls()).toEqual({
      admin: undefined,
      meta: ADMIN,
      reader: ADMIN,
      writer: ADMIN,
    });
    expect(() => parseSettings({}, "/").databaseUrls()).toThrow(/READER_DATABASE_URL or DATABASE_URL/);
  });

  it("refuse to derive passwords from nothing", () => {
    expect(() => parseSettings({ DATABASE_URL: "postgres://me@localhost/db" }, "/").databaseUrls()).toThrow(
      /VITRINA_ROLE_SECRET/,
    );
  });

  it("read further source connections by name", () => {
    const settings = parseSettings({ SOURCE_UGC_URL: ADMIN, SOURCE_OLD_FILMS_URL: ADMIN }, "/");
    expect([...settings.sources({ reader: ADMIN }).addresses.keys()]).toEqual(["main", "ugc", "old_films"]);
  });

  it("read how sources tell of their changes", () => {
    const changesOf = (environment: Record<string, string>) =>
      Object.fromEntries(parseSettings(environment, "/").sources({ reader: ADMIN }).changes);
    const ugc = { SOURCE_UGC_URL: ADMIN };
    expect(changesOf({ ...ugc, SOURCE_UGC_CHANGES: "table" })).toEqual({});
    expect(
      changesOf({
        ...ugc,
        SOURCE_UGC_CHANGES: "slot:a_1",
        SOURCE_MAIN_CHANGES: "slot:b",
        SOURCE_MAIN_SLOT_KEEP_MIB: "64",
      }),
    ).toEqual({
      ugc: { kind: "slot", name: "a_1", keepBytes: 8 * 1024 ** 3 },
      main: { kind: "slot", name: "b", keepBytes: 64 * 1024 ** 2 },
    });
    for (const value of ["slot", "slot:", "slot:Up", "slot:a-b", "slot:1a", "queue:a"]) {
      expect(() => changesOf({ ...ugc, SOURCE_UGC_CHANGES: value })).toThrow("SOURCE_UGC_CHANGES is not table or slot");
    }
    expect(() => changesOf({ SOURCE_SHOP_CHANGES: "slot:a" })).toThrow("there is no SOURCE_SHOP_URL");
    expect(() => changesOf({ ...ugc, SOURCE_UGC_CHANGES: "slot:a", SOURCE_UGC_SLOT_KEEP_MIB: "1" })).toThrow(
      "SOURCE_UGC_SLOT_KEEP_MIB",
    );
  });
});
