import type { FastifyRequest } from "fastify";
import { KEY_PREFIX } from "../../domain/api-key.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Caller, LOCAL } from "../actor.ts";
import type { ApiParts } from "../api.ts";
import { badLogin } from "./bad-login.ts";
import { createJwtLogin } from "./jwt-login.ts";
import { logInWithKey } from "./key-login.ts";

const BEARER = /^Bearer +(?<token>[\w.~+/=-]+)$/i;

export type LogIn = (request: FastifyRequest) => Promise<Caller>;

/** Finds out who sends a request, by the header Authorization. */
export function createLogIn({ store, log, api: settings }: ApiParts): LogIn {
  if (!settings.loginRequired) return async () => LOCAL;
  const logInWithToken = settings.jwt && createJwtLogin(settings.jwt);
  return async ({ headers: { authorization } }) => {
    if (authorization === undefined) throw new VitrinaError("UNAUTHENTICATED", "This operation needs a login.");
    const token = BEARER.exec(authorization)?.groups?.["token"];
    if (token === undefined) throw badLogin("The header authorization is not of the form: Bearer <key>.");
    if (token.startsWith(KEY_PREFIX)) return logInWithKey(token, store, log);
    if (logInWithToken === undefined) throw badLogin("The key is not known.");
    return logInWithToken(token);
  };
}
