import { tolerateClosedPipes } from "../cli/terminal.ts";
import { runProgram } from "./program.ts";

tolerateClosedPipes();
await runProgram(process.argv.slice(2), process);
