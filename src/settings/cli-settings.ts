import { type Environment, invalidSettings, readEnvironment } from "./environment.ts";

/** The settings of the commands that call the API. */
export interface CliSettings {
  readonly apiUrl: string;
  readonly apiKey: string | undefined;
  /** False: a terminal that cannot move its cursor. */
  readonly canRedraw: boolean;
}

export const DEFAULT_API_URL = "http://127.0.0.1:8000";

/** What is wrong with a value. By hand: a schema library takes longer to load than most commands take. */
const CHECKS: Readonly<Record<string, (value: string) => string | undefined>> = {
  VITRINA_API_URL: (url) => (isHttpUrl(url) ? undefined : `is not an http or https URL such as ${DEFAULT_API_URL}`),
  VITRINA_API_KEY: (key) => (/^[\x21-\x7e]+$/.test(key) ? undefined : "has a character that no key has"),
};

/** Reads the environment, and below it `.env` of the working folder. */
export function loadCliSettings(environment: Environment = process.env, folder: string = process.cwd()): CliSettings {
  const given = readEnvironment(environment, folder);
  const mistakes = Object.entries(CHECKS).flatMap(([name, check]) => {
    const value = given[name];
    const mistake = value === undefined ? undefined : check(value);
    return mistake === undefined ? [] : [`${name} ${mistake}`];
  });
  if (mistakes.length > 0) throw invalidSettings(mistakes);
  const { VITRINA_API_URL: apiUrl = DEFAULT_API_URL, VITRINA_API_KEY: apiKey, TERM: terminal } = given;
  return { apiUrl, apiKey, canRedraw: terminal !== "dumb" };
}

/** Refuses a user name in the URL: it would be ignored, which nobody expects. */
export function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return ["http:", "https:"].includes(protocol) && [username, password, search, hash].every((part) => part === "");
}
