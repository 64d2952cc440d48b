import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { VitrinaError } from "../domain/error-catalogue.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The real environment, which takes precedence over `.env` of the folder. */
export function readEnvironment(environment: Environment, folder: string): Environment {
  return { ...readDotEnv(join(folder, ".env")), ...withoutEmpty(environment) };
}

function readDotEnv(file: string): Environment {
  try {
    return withoutEmpty(parseEnv(readFileSync(file, "utf8")) as Environment);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new VitrinaError("SETTINGS_INVALID", `${file} cannot be read: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

/** `API_PORT=` in a file means: not set. */
function withoutEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ""));
}

export function invalidSettings(mistakes: readonly string[]): VitrinaError {
  const list = mistakes.map((mistake) => `  - ${mistake}`).join("\n");
  return new VitrinaError("SETTINGS_INVALID", `These settings are not valid:\n${list}`);
}
