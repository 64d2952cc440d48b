#!/usr/bin/env node
// The command `vitrina`. In a source checkout that was never built it builds first; in a package `dist` is there.
import { existsSync, readFileSync } from "node:fs";

const [first, ...more] = process.argv.slice(2);
if (more.length === 0 && (first === "--version" || first === "-V")) {
  // Installers and scripts ask this again and again; it needs nothing of the program.
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  // Whoever asked may not read the answer.
  process.stdout.on("error", () => undefined).write(`${version}\n`);
} else {
  if (!existsSync(new URL("../dist/main/vitrina.js", import.meta.url))) await import("../scripts/prepare.mjs");
  await import("../dist/main/vitrina.js");
}
