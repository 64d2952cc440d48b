#!/usr/bin/env node
// The command `vitrina`. In a source checkout that was never built it builds first; in a package `dist` is there.
import { existsSync } from "node:fs";

if (!existsSync(new URL("../dist/main/vitrina.js", import.meta.url))) await import("../scripts/prepare.mjs");
await import("../dist/main/vitrina.js");
