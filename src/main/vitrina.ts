import { tolerateClosedPipes } from "../cli/terminal.ts";
import { runProgram } from "./run-program.ts";

tolerateClosedPipes();
await runProgram(process.argv.slice(2), process);
