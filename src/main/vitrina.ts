import { tolerateClosedPipes } from "../cli/closed-pipes.ts";
import { runProgram } from "./program.ts";

tolerateClosedPipes();
await runProgram(process.argv.slice(2), process);
