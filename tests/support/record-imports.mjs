// Preloaded into a process (NODE_OPTIONS=--import): prints every package that it imports as a module, once.
import { register } from "node:module";

const hooks = `
  import { writeSync } from "node:fs";
  const seen = new Set();
  export async function resolve(specifier, context, next) {
    if (specifier.startsWith("@") && !seen.has(specifier)) {
      seen.add(specifier);
      writeSync(2, "IMPORTED " + specifier + "\\n");
    }
    return next(specifier, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
