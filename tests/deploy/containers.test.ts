import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";

/** What can be said of the image and the stand without a container engine; npm run test:docker says the rest. */

interface Service {
  image: string;
  build?: { args?: Record<string, string> };
  command?: string;
  container_name?: string;
  user?: string;
  read_only?: boolean;
  privileged?: boolean;
  tmpfs?: string[];
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  ulimits?: object;
  init?: boolean;
  environment: Record<string, string | number>;
  ports?: string[];
  volumes?: string[];
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  stop_grace_period?: string;
  restart: string;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");
const composeText = textOf("deploy/docker-compose.yml");
const compose = parse(composeText, { merge: true }) as { services: Record<string, Service>; volumes: object };
const entries = Object.entries(compose.services);
const ours = entries.filter(([, { image }]) => image.startsWith("${VITRINA_IMAGE"));

function service(name: string): Service {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`There is no service ${name}.`);
  return found;
}

describe("R11.2 the compose file", () => {
  it("has the database, the API, the runner, the search server and the migration", () => {
    const names = ["elasticsearch", "etl_api", "etl_db", "etl_migrate", "etl_runner"];
    expect(Object.keys(compose.services).sort()).toEqual(names);
    expect(service("etl_db").image).toBe("postgres:18");
    expect(ours.map(([name]) => name)).toEqual(["etl_migrate", "etl_api", "etl_runner"]);
  });

  it("publishes ports on this machine only, and none of the runner's", () => {
    const ports = entries.flatMap(([, { ports = [] }]) => ports);
    expect(ports).toHaveLength(3);
    expect(ports.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
    expect(service("etl_runner").ports).toBeUndefined();
  });

  it("lets the runner be scaled: no container has a fixed name", () => {
    expect(entries.filter(([, { container_name }]) => container_name !== undefined)).toEqual([]);
  });

  it("starts everything in order, after health checks and the migration", () => {
    const healthy = { condition: "service_healthy" };
    const completed = { condition: "service_completed_successfully" };
    expect(service("etl_migrate").depends_on).toEqual({ etl_db: healthy });
    expect(service("etl_api").depends_on).toEqual({ etl_db: healthy, etl_migrate: completed });
    expect(service("etl_runner").depends_on).toEqual({
      etl_db: healthy,
      etl_migrate: completed,
      elasticsearch: healthy,
    });
    const unchecked = entries.filter(([, { healthcheck }]) => healthcheck === undefined).map(([name]) => name);
    expect(unchecked).toEqual(["etl_migrate"]);
  });

  it.each(ours)("%s has no rights that it does not need", (_, part) => {
    expect(part).toMatchObject({ user: "10001:10001", read_only: true, init: true, tmpfs: ["/tmp"] });
  });

  it.each(entries)("%s has no capabilities, cannot gain any, and asks for no special limits", (_, part) => {
    expect(part).toMatchObject({ cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
    expect([part.cap_add, part.privileged, part.ulimits]).toEqual([undefined, undefined, undefined]);
  });

  it("R8.3 gives the administrator's password to nobody but the migration and the database", () => {
    const holders = entries.filter(([, part]) => JSON.stringify(part).includes("POSTGRES_PASSWORD"));
    expect(holders.map(([name]) => name)).toEqual(["etl_db", "etl_migrate"]);
    expect(service("etl_api").environment).not.toHaveProperty("DATABASE_URL");
  });

  it("R8.5 wants a login where the API is reached from outside its container", () => {
    expect(service("etl_api").environment).toMatchObject({ API_HOST: "0.0.0.0", API_AUTH: "required" });
  });

  it("leaves the runner more time to stop than it takes for its batches", () => {
    const { environment, stop_grace_period } = service("etl_runner");
    expect(Number.parseInt(stop_grace_period ?? "0", 10)).toBeGreaterThan(Number(environment["STOP_TIMEOUT_SECONDS"]));
  });

  it("keeps data in named volumes that exist", () => {
    const mounted = entries.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(":")[0]));
    expect(mounted.sort()).toEqual(Object.keys(compose.volumes).sort());
  });
});

describe("R8.4 the secrets of the stand", () => {
  const sample = parseEnv(textOf("deploy/.env.sample"));
  const secrets = Object.keys(sample).filter((name) => name.endsWith("_PASSWORD"));
  const folder = mkdtempSync(join(tmpdir(), "vitrina-deploy-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("are empty in the sample, and refused by the compose file when they are missing", () => {
    expect(secrets).toHaveLength(6);
    expect(secrets.filter((name) => sample[name] !== "")).toEqual([]);
    const used = [...composeText.matchAll(/(?<!\$)\$\{([A-Z_]+)(:\?)?/g)];
    expect(used.filter(([, name]) => secrets.includes(name as string)).length).toBeGreaterThanOrEqual(6);
    expect(used.filter(([, name, must]) => secrets.includes(name as string) !== (must !== undefined))).toEqual([]);
  });

  it("are created once, at random, for the owner's eyes only", () => {
    for (const file of ["create-env.sh", ".env.sample"]) cpSync(join(root, "deploy", file), join(folder, file));
    const create = (): string => {
      execFileSync("sh", [join(folder, "create-env.sh")]);
      return readFileSync(join(folder, ".env"), "utf8");
    };
    const first = create();
    const values = parseEnv(first);
    expect(statSync(join(folder, ".env")).mode & 0o777).toBe(0o600);
    expect(secrets.filter((name) => !/^[0-9a-f]{48}$/.test(values[name] ?? ""))).toEqual([]);
    expect(new Set(secrets.map((name) => values[name])).size).toBe(secrets.length);
    expect(Object.keys(values)).toEqual(Object.keys(sample));
    expect(create()).toBe(first);
  });

  it("are ignored by Git and left out of the image", () => {
    expect(textOf(".gitignore").split("\n")).toContain(".env");
    const lines = textOf(".dockerignore").split("\n");
    expect(lines.find((line) => line !== "" && !line.startsWith("#"))).toBe("*");
    expect(lines.filter((line) => line.startsWith("!") && /\.env|deploy/.test(line))).toEqual([]);
  });
});

describe("the Dockerfile", () => {
  const text = textOf("Dockerfile");
  const instructions = text
    .split("\n")
    .filter((line) => /^[A-Z]+ /.test(line))
    .map((line) => ({ word: line.split(" ")[0], rest: line.slice(line.indexOf(" ") + 1) }));
  const runtime = text.slice(text.indexOf("AS runtime"));

  it("builds on older engines, too: no syntax line, no heredoc, no mounts", () => {
    expect(text).not.toMatch(/#\s*syntax=/i);
    expect(text).not.toMatch(/<<-?["']?[A-Z]/);
    expect(text).not.toMatch(/--mount|--link|COPY --chmod/);
  });

  it("leaves health checks to those who run it, because API and runner differ", () => {
    expect(instructions.map(({ word }) => word)).not.toContain("HEALTHCHECK");
  });

  it("ends as a numbered user that is not root, on a base without package managers of Node.js", () => {
    expect(instructions.filter(({ word }) => word === "USER").map(({ rest }) => rest)).toEqual(["10001:10001"]);
    expect(text).toMatch(/^FROM \$\{BASE_IMAGE\} AS runtime$/m);
    expect(runtime).not.toMatch(/npm/);
  });

  it("has a Python only where it is asked for, as compose does for the demo's task", () => {
    expect(runtime.match(/apt-get install.*/g)).toEqual([
      "apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*; \\",
    ]);
    expect(text).toContain("ARG WITH_PYTHON=no");
    expect(runtime).toMatch(/RUN if \[ "\$WITH_PYTHON" = yes \]; then \\\n +apt-get/);
    expect(ours.map(([, { build }]) => build?.args)).toEqual(ours.map(() => ({ WITH_PYTHON: "yes" })));
    // The migration looks there which of the demo's pipelines can run, and the runner runs them.
    for (const name of ["etl_migrate", "etl_runner"]) {
      const folder = String(service(name).environment["TASKS_DIR"]);
      expect(existsSync(join(root, folder.replace(/^\/app\//, ""), "viewer_segment.py"))).toBe(true);
    }
  });

  it("installs without development and optional dependencies", () => {
    expect(text).toContain("npm ci --omit=dev --omit=optional");
  });

  it("copies only what exists and what .dockerignore lets through", () => {
    const allowed = textOf(".dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    const copied = instructions
      .filter(({ word, rest }) => word === "COPY" && !rest.startsWith("--from"))
      .flatMap(({ rest }) => rest.split(" ").slice(0, -1));
    expect(copied.length).toBeGreaterThan(8);
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(copied.filter((path) => !allowed.some((one) => one === path || one.startsWith(`${path}/`)))).toEqual([]);
    expect(allowed.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
