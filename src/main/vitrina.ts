import { tolerateClosedPipes } from "../cli/closed-pipes.ts";
import { VERSION } from "./version.ts";

tolerateClosedPipes();
const args = process.argv.slice(2);
// Installers and scripts ask this again and again; it needs none of the commands.
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${VERSION}\n`);
} else {
  const { runProgram } = await import("./program.ts");
  await runProgram(args, process);
}
