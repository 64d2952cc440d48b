import { z } from "zod";
import { type Environment, invalidSettings, readEnvironment } from "./environment.ts";

/** The settings of the commands that call the API. */
export interface CliSettings {
  readonly apiUrl: string;
  readonly apiKey: string | undefined;
  /** False: a terminal that cannot move its cursor. */
  readonly canRedraw: boolean;
}

export const DEFAULT_API_URL = "http://127.0.0.1:8000";

const schema = z.object({
  VITRINA_API_URL: z
    .string()
    .refine(isHttpUrl, `is not an http or https URL such as ${DEFAULT_API_URL}`)
    .default(DEFAULT_API_URL),
  VITRINA_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "has a character that no key has")
    .optional(),
  TERM: z.string().optional(),
});

/** Reads the environment, and below it `.env` of the working folder. */
export function loadCliSettings(environment: Environment = process.env, folder: string = process.cwd()): CliSettings {
  const parsed = schema.safeParse(readEnvironment(environment, folder));
  if (!parsed.success) {
    throw invalidSettings(parsed.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`));
  }
  const { VITRINA_API_URL: apiUrl, VITRINA_API_KEY: apiKey, TERM: terminal } = parsed.data;
  return { apiUrl, apiKey, canRedraw: terminal !== "dumb" };
}

/** Refuses a user name in the URL: it would be ignored, which nobody expects. */
export function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return ["http:", "https:"].includes(protocol) && [username, password, search, hash].every((part) => part === "");
}
