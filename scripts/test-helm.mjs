// npm run test:helm: lints and renders the chart with several sets of values, checks what comes out, and compares it with
// the schemas of Kubernetes. helm and kubeconform come from the PATH (or HELM, KUBECONFORM), else they are built once with
// Go into .cache.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { goProgram } from "./go-programs.mjs";
import { writeSchemas } from "./kubernetes-schemas.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const chart = join(root, "deploy", "helm", "vitrina");
const KUBE_VERSION = "1.36.0";
const POD_KINDS = ["Deployment", "Job"];

const ROLES = {
  META_DATABASE_URL: "postgres://vitrina_meta:canary-meta@db/etl",
  READER_DATABASE_URL: "postgres://vitrina_reader:canary-reader@db/etl",
  WRITER_DATABASE_URL: "postgres://vitrina_writer:canary-writer@db/etl",
};
const OWN_SECRETS = {
  roles: { values: ROLES },
  admin: { values: { DATABASE_URL: "postgres://admin:canary-admin@db/etl" } },
  search: { values: { ELASTICSEARCH_API_KEY: "canary-search" } },
};
const GIVEN_SECRETS = {
  roles: { existingSecret: "given-roles" },
  admin: { existingSecret: "given-admin" },
  search: { existingSecret: "given-search" },
};
const CONFIG = {
  ELASTICSEARCH_URL: "https://search:9200",
  TARGET_INDEXES: "films",
  API_ALLOWED_HOSTS: "etl.example.com",
};
const EVERYTHING = {
  secrets: GIVEN_SECRETS,
  config: CONFIG,
  imagePullSecrets: [{ name: "registry" }],
  runner: { autoscaling: { enabled: true, prometheusUrl: "http://prometheus:9090" }, concurrency: 3 },
  serviceMonitor: { enabled: true, apiKeySecret: { name: "viewer" }, labels: { release: "prometheus" } },
  networkPolicy: { apiFrom: [{ namespaceSelector: { matchLabels: { team: "etl" } } }] },
  podAnnotations: { team: "etl" },
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "etl", operator: "Exists" }],
};

const folder = mkdtempSync(join(tmpdir(), "vitrina-helm-"));
const mistakes = [];
let passed = 0;
function check(claim, isTrue) {
  if (isTrue) passed += 1;
  else mistakes.push(claim);
}

let helm;

function render(name, values, command = ["template", "etl"]) {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(values));
  const [verb, ...rest] = command;
  const options = ["--kube-version", KUBE_VERSION, "--namespace", "marts", "--values", file];
  return spawnSync(helm, [verb, ...rest, chart, ...options], { encoding: "utf8" });
}

function objectsOf(name, values) {
  const { status, stdout, stderr } = render(name, values);
  if (status !== 0) throw new Error(`helm template fails with ${name}: ${stderr}`);
  writeFileSync(join(folder, `${name}.yaml`), stdout);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS())
    .filter((object) => object !== null);
}

function checkPods(name, objects) {
  const pods = objects.filter(({ kind }) => POD_KINDS.includes(kind));
  check(`${name}: there are pods of API, runner and migration`, pods.length === 3);
  for (const { metadata, spec } of pods) {
    const pod = spec.template.spec;
    const who = `${name}: ${metadata.name}`;
    check(`${who} is not root`, pod.securityContext.runAsNonRoot === true && pod.securityContext.runAsUser === 10001);
    check(`${who} has the default seccomp profile`, pod.securityContext.seccompProfile.type === "RuntimeDefault");
    check(`${who} has no token of the cluster`, pod.automountServiceAccountToken === false);
    check(
      `${who} sees nothing of its node`,
      !pod.hostNetwork && !pod.hostPID && !pod.volumes.some(({ hostPath }) => hostPath),
    );
    for (const { securityContext, resources } of pod.containers) {
      check(`${who} has a read-only root file system`, securityContext.readOnlyRootFilesystem === true);
      check(
        `${who} cannot gain rights`,
        securityContext.allowPrivilegeEscalation === false && !securityContext.privileged,
      );
      check(
        `${who} has no capabilities`,
        securityContext.capabilities.drop.join() === "ALL" && !securityContext.capabilities.add,
      );
      check(
        `${who} has a limit of memory`,
        resources.limits.memory !== undefined && resources.requests.cpu !== undefined,
      );
    }
  }
  for (const { metadata, spec } of pods.filter(({ kind }) => kind === "Deployment")) {
    const [container] = spec.template.spec.containers;
    const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    check(
      `${name}: ${metadata.name} has every probe`,
      probes.every((probe) => probe?.httpGet.path.startsWith("/")),
    );
    const ports = container.ports.map((port) => port.name);
    check(
      `${name}: ${metadata.name}'s probes use a port it has`,
      probes.every((probe) => ports.includes(probe?.httpGet.port)),
    );
  }
}

/** The environment of a pod: its own variables, and the objects from which it takes more. */
function environmentOf(objects, part) {
  const found = objects.find(({ kind, metadata }) => POD_KINDS.includes(kind) && metadata.name.endsWith(`-${part}`));
  const [container] = found.spec.template.spec.containers;
  const names = container.envFrom.map(({ secretRef, configMapRef }) => (secretRef ?? configMapRef).name);
  return { env: Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value])), names };
}

function checkOwnSecrets(objects) {
  const withCanary = objects.filter((object) => JSON.stringify(object).includes("canary"));
  check("secrets are in Secrets only", withCanary.length > 0 && withCanary.every(({ kind }) => kind === "Secret"));
  const admin = withCanary.filter((object) => JSON.stringify(object).includes("canary-admin"));
  const policy = admin[0]?.metadata.annotations["helm.sh/hook-delete-policy"] ?? "";
  check(
    "the administrator's URL is gone when the migration succeeded",
    admin.length === 1 && policy.includes("hook-succeeded"),
  );
  check(
    "the runner has the search cluster's login, the API has not",
    environmentOf(objects, "runner").names.includes("etl-vitrina-search") &&
      !environmentOf(objects, "api").names.includes("etl-vitrina-search"),
  );
  const named = ["api", "runner", "migration"].flatMap((part) => environmentOf(objects, part).names);
  const existing = objects
    .filter(({ kind }) => ["Secret", "ConfigMap"].includes(kind))
    .map(({ metadata }) => metadata.name);
  check(
    "every Secret and ConfigMap that a pod names is rendered",
    named.every((name) => existing.includes(name)),
  );
}

function checkEverything(objects) {
  const only = (kind, end = "") =>
    objects.filter((object) => object.kind === kind && object.metadata.name.endsWith(end));
  check("with given secrets the chart makes none", only("Secret").length === 0);
  const [job] = only("Job");
  check(
    "the migration comes before install and upgrade",
    job.metadata.annotations["helm.sh/hook"] === "pre-install,pre-upgrade",
  );
  check(
    "the migration alone has the administrator's Secret",
    environmentOf(objects, "migration").names.includes("given-admin") &&
      ["api", "runner"].every((part) => !environmentOf(objects, part).names.includes("given-admin")),
  );
  check("the API wants a login", environmentOf(objects, "api").env.API_AUTH === "required");
  const [api] = only("Deployment", "-api");
  const host = api.spec.template.spec.containers[0].readinessProbe.httpGet.httpHeaders?.[0];
  check("the probes use a name that the API answers to", host?.name === "Host" && host.value === "etl.example.com");

  const [runner] = only("Deployment", "-runner");
  const [scaler] = only("ScaledObject");
  const trigger = scaler.spec.triggers[0];
  check(
    "the runner is scaled, and nobody else sets its number",
    scaler.spec.scaleTargetRef.name === runner.metadata.name && runner.spec.replicas === undefined,
  );
  check(
    "it scales on waiting pipelines",
    trigger.type === "prometheus" && trigger.metadata.query.includes("vitrina_pipelines_waiting"),
  );
  check("it looks at its own namespace", trigger.metadata.query.includes('namespace="marts"'));
  check(
    "one runner for as many pipelines as it executes at once",
    trigger.metadata.threshold === "3" && environmentOf(objects, "runner").env.RUNNER_CONCURRENCY === "3",
  );
  check("one runner always stays", scaler.spec.minReplicaCount >= 1);
  const { env } = environmentOf(objects, "runner");
  const grace = runner.spec.template.spec.terminationGracePeriodSeconds;
  check("a runner may end its batches", grace > Number(env.STOP_TIMEOUT_SECONDS));

  const policies = only("NetworkPolicy");
  check(
    "every pod has a NetworkPolicy in both directions",
    policies.length === 3 && policies.every(({ spec }) => spec.policyTypes.join() === "Ingress,Egress"),
  );
  const [migrationPolicy] = only("NetworkPolicy", "-migration");
  check("nobody reaches the migration", migrationPolicy.spec.ingress === undefined);
  for (const object of [
    ...policies,
    ...only("PodDisruptionBudget"),
    ...only("Service"),
    ...only("ServiceMonitor"),
    ...only("PodMonitor"),
  ]) {
    const { selector, podSelector } = object.spec;
    const wanted = Object.entries((podSelector ?? selector).matchLabels ?? selector);
    const labels = objects.flatMap(({ kind, metadata, spec }) =>
      object.kind === "ServiceMonitor"
        ? kind === "Service"
          ? [metadata.labels]
          : []
        : POD_KINDS.includes(kind)
          ? [spec.template.metadata.labels]
          : [],
    );
    const hits = labels.filter((one) => wanted.every(([key, value]) => one[key] === value));
    check(`${object.kind} ${object.metadata.name} selects exactly one kind of pods`, hits.length === 1);
  }
  check("API and runner have a PodDisruptionBudget", only("PodDisruptionBudget").length === 2);
}

/** Each must be refused, with a message that names the place. */
const REFUSED = {
  "no database": [{}, "/secrets/roles"],
  "no administrator": [{ secrets: { roles: { values: ROLES } } }, "/secrets/admin"],
  "a password in config": [
    { secrets: GIVEN_SECRETS, config: { ELASTICSEARCH_PASSWORD: "x" } },
    "ELASTICSEARCH_PASSWORD",
  ],
  "a URL with a password in config": [
    { secrets: GIVEN_SECRETS, config: { ELASTICSEARCH_URL: "https://u:p@search" } },
    "/config",
  ],
  "autoscaling without Prometheus": [
    { secrets: GIVEN_SECRETS, runner: { autoscaling: { enabled: true } } },
    "prometheusUrl",
  ],
  "no runner at all": [{ secrets: GIVEN_SECRETS, runner: { autoscaling: { minReplicas: 0 } } }, "minReplicas"],
  "a monitor without a key": [{ secrets: GIVEN_SECRETS, serviceMonitor: { enabled: true } }, "apiKeySecret"],
  "a mistyped value": [{ secrets: GIVEN_SECRETS, runer: {} }, "runer"],
};

function checkSchemas(names, objects) {
  const schemas = join(folder, "schemas");
  writeSchemas(schemas, [...new Set(objects.map(({ kind }) => kind))]);
  const kubeconform = goProgram("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0");
  const files = names.map((name) => join(folder, `${name}.yaml`));
  const location = join(schemas, "{{ .ResourceKind }}{{ .KindSuffix }}.json");
  const { status, stdout } = spawnSync(kubeconform, ["-schema-location", location, "-summary", ...files], {
    encoding: "utf8",
  });
  process.stdout.write(stdout);
  check("every object fits the schemas of Kubernetes", status === 0);
}

const SETS = {
  "own-secrets": { secrets: OWN_SECRETS },
  everything: EVERYTHING,
  least: {
    secrets: { roles: GIVEN_SECRETS.roles },
    config: {},
    migration: { enabled: false },
    networkPolicy: { enabled: false },
    podDisruptionBudget: { enabled: false },
  },
};

try {
  helm = goProgram("helm", "helm.sh/helm/v3/cmd/helm@v3.22.0");
  for (const [name, values] of Object.entries(SETS)) {
    const lint = render(name, values, ["lint", "--strict", "--quiet"]);
    check(`helm lint has nothing to say about ${name}: ${lint.stdout}${lint.stderr}`, lint.status === 0);
  }
  const own = objectsOf("own-secrets", SETS["own-secrets"]);
  const everything = objectsOf("everything", SETS.everything);
  const least = objectsOf("least", SETS.least);
  checkPods("own-secrets", own);
  checkPods("everything", everything);
  checkOwnSecrets(own);
  checkEverything(everything);
  check(
    "the least is two Deployments, a Service and a ConfigMap",
    least
      .map(({ kind }) => kind)
      .sort()
      .join() === "ConfigMap,Deployment,Deployment,Service",
  );
  for (const [name, [values, place]] of Object.entries(REFUSED)) {
    const { status, stderr } = render("refused", values);
    check(`the chart refuses ${name}, and says where`, status !== 0 && stderr.includes(place));
  }
  checkSchemas(Object.keys(SETS), [...own, ...everything, ...least]);
} catch (error) {
  mistakes.push(error.message);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

for (const mistake of mistakes) console.error(`not true: ${mistake}`);
console.log(`helm: ${passed} passed, ${mistakes.length} failed`);
process.exit(mistakes.length === 0 ? 0 : 1);
