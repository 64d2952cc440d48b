import type { IncomingMessage } from "node:http";
import { type Operations, type Problem, ROUTES } from "./api-types.ts";
import { ApiUnreachable, CliFailure, EXIT, type ExitCode } from "./failure.ts";
import { readText, sendHttp } from "./http.ts";

export type OperationId = keyof Operations;
export type ApiAnswer<Id extends OperationId> = Operations[Id]["answer"];
export type Input<Id extends OperationId> = Omit<Operations[Id], "answer">;
type InputArguments<Id extends OperationId> =
  Record<never, never> extends Input<Id> ? [input?: Input<Id>] : [input: Input<Id>];

interface AnyInput {
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

type Headers = Readonly<Record<string, string>>;

interface SendOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Headers;
}

/** Even the slowest answers, previews and validations, take less than half of this. */
const ANSWER_TIMEOUT_MS = 60_000;

/** The API refused, and says why. */
export class ApiProblem extends CliFailure {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly errors: NonNullable<Problem["errors"]>;

  constructor(problem: Problem) {
    const { detail, hint, errors = [] } = problem;
    super(exitCodeOf(problem), detail, [hint, ...errors.flatMap(lineOf)]);
    this.status = problem.status;
    this.code = problem.code;
    this.hint = hint;
    this.errors = errors;
  }
}

/** A problem with the request as a whole is already in the detail. */
function lineOf({ pointer, message }: { readonly pointer: string; readonly message: string }): string[] {
  return pointer === "" ? [] : [`${pointer}: ${message}`];
}

/** Calls the operations of the API by their names; the types are made from its OpenAPI document. */
export class ApiClient {
  readonly #baseUrl: string;
  readonly #headers: Headers;

  constructor(baseUrl: string, apiKey: string | undefined) {
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }

  async request<Id extends OperationId>(id: Id, ...[input]: InputArguments<Id>): Promise<ApiAnswer<Id>> {
    const response = await this.#send(id, input, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    if (response.statusCode === 204) return undefined as ApiAnswer<Id>;
    return (await this.#readJson(response)) as ApiAnswer<Id>;
  }

  /** A streamed answer, chunk by chunk, until one side hangs up. */
  async *stream<Id extends OperationId>(id: Id, input: Input<Id>, headers: Headers): AsyncGenerator<string> {
    const answer = await this.#send(id, input, { headers });
    answer.setEncoding("utf8");
    try {
      for await (const chunk of answer) yield chunk;
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  async #send(
    id: OperationId,
    { params, query, body }: AnyInput = {},
    init: SendOptions = {},
  ): Promise<IncomingMessage> {
    const { method, path } = ROUTES[id];
    const url = `${this.#baseUrl}${filledIn(path, params)}${queryText(query)}`;
    const isWithBody = body !== undefined;
    let response: IncomingMessage;
    try {
      response = await sendHttp(url, {
        ...init,
        method,
        headers: { ...init.headers, ...this.#headers, ...(isWithBody && { "content-type": "application/json" }) },
        ...(isWithBody && { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw this.#unreachable(error);
    }
    const { statusCode = 0 } = response;
    if (statusCode < 200 || statusCode > 299) throw await this.#refusal(response);
    return response;
  }

  async #refusal(response: IncomingMessage): Promise<CliFailure> {
    const problem = (await this.#readJson(response)) as Partial<Problem>;
    if (typeof problem.detail === "string" && typeof problem.code === "string") {
      return new ApiProblem(problem as Problem);
    }
    return this.#foreign(response);
  }

  async #readJson(response: IncomingMessage): Promise<unknown> {
    if (!/[/+]json\b/.test(response.headers["content-type"] ?? "")) throw this.#foreign(response);
    try {
      return JSON.parse(await readText(response));
    } catch (error) {
      throw error instanceof SyntaxError ? this.#foreign(response) : this.#unreachable(error);
    }
  }

  #unreachable(error: unknown): ApiUnreachable {
    return new ApiUnreachable(`The API at ${this.#baseUrl} cannot be reached (${reasonOf(error)}).`, error);
  }

  /** A proxy's answer while the API is down, or another program altogether. */
  #foreign(response: IncomingMessage): ApiUnreachable {
    response.destroy();
    return new ApiUnreachable(
      `The server at ${this.#baseUrl} is not the Vitrina API (HTTP status ${response.statusCode}).`,
    );
  }
}

function exitCodeOf({ status }: Problem): ExitCode {
  return status === 401 || status === 403 ? EXIT.notAllowed : EXIT.failed;
}

function filledIn(path: string, params: AnyInput["params"] = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
}

function queryText(query: AnyInput["query"] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no answer within ${ANSWER_TIMEOUT_MS / 1000} s`;
  return (error as NodeJS.ErrnoException).code ?? error.message;
}

interface ApiPage<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

const ITEMS_PER_PAGE = 200;

/** Reads all pages, and returns them as one. */
export async function allPages<T>(
  read: (page: { limit: number; after?: string }) => Promise<ApiPage<T>>,
): Promise<ApiPage<T>> {
  const items: T[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await read({ limit: ITEMS_PER_PAGE, ...(after !== undefined && { after }) });
    items.push(...page.items);
    after = page.next;
  }
  return { items, next: null };
}
