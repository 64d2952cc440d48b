import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { goModuleFolder } from "./go-programs.mjs";

// The Go modules of these projects contain the schemas of their objects.
const KUBERNETES = "k8s.io/kubernetes@v1.36.3";
const KEDA = "github.com/kedacore/keda/v2@v2.21.0";
const PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0";
const CUSTOM = {
  ScaledObject: [KEDA, "config/crd/bases/keda.sh_scaledobjects.yaml"],
  ServiceMonitor: [PROMETHEUS_OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"],
  PodMonitor: [PROMETHEUS_OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"],
};

/** Writes a JSON schema for each of the kinds, named as kubeconform looks for it. Unknown fields are refused. */
export function writeSchemas(folder, kinds) {
  mkdirSync(folder, { recursive: true });
  const write = ({ group, version, kind }, schema) => {
    const name = [kind, ...(group === "" ? [] : [group.split(".")[0]]), version].join("-").toLowerCase();
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(schema));
  };
  const definitions = strict(JSON.parse(readFileSync(swagger(), "utf8")).definitions);
  for (const [name, definition] of Object.entries(definitions)) {
    for (const type of definition["x-kubernetes-group-version-kind"] ?? []) {
      if (kinds.includes(type.kind))
        write(type, { $ref: `#/definitions/${name}`, definitions: reachable(name, definitions) });
    }
  }
  for (const [module, path] of kinds.flatMap((kind) => (CUSTOM[kind] ? [CUSTOM[kind]] : []))) {
    const { spec } = parse(readFileSync(join(goModuleFolder(module), path), "utf8"));
    for (const { name: version, schema } of spec.versions) {
      const { properties, ...rest } = strict(schema.openAPIV3Schema);
      // What every object has is described elsewhere.
      write(
        { group: spec.group, version, kind: spec.names.kind },
        { ...rest, properties: { ...properties, metadata: {} } },
      );
    }
  }
}

/** The definitions that a definition refers to, directly or indirectly. */
function reachable(name, definitions, found = {}) {
  if (Object.hasOwn(found, name)) return found;
  found[name] = definitions[name];
  for (const [, next] of JSON.stringify(definitions[name]).matchAll(/"#\/definitions\/([^"]+)"/g)) {
    reachable(next, definitions, found);
  }
  return found;
}

function swagger() {
  return join(goModuleFolder(KUBERNETES), "api", "openapi-spec", "swagger.json");
}

/** OpenAPI as JSON schema: an object has the fields that are named, and a few kinds of text may also be numbers. */
function strict(schema) {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== "object" || schema === null) return schema;
  if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") return { type: ["integer", "string"] };
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));
  const isClosed = copy.type === "object" && copy.properties && !copy["x-kubernetes-preserve-unknown-fields"];
  return isClosed && copy.additionalProperties === undefined ? { ...copy, additionalProperties: false } : copy;
}
