import { VitrinaError } from "../../../domain/error-catalogue.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { Client } from "../../../postgres/connection.ts";
import { withDeadline } from "../deadline.ts";
import { connectToSource, lockedSourceError, type PostgresSourceConfig } from "../read-session.ts";

/** The session of a follower's rounds, for one thing at a time. Whatever goes wrong ends it; it then connects again. */
export interface RoundSession {
  /** Until `end`, if it does not fail. */
  begin<T>(use: (client: Client) => Promise<T>): Promise<T>;
  end(): void;
  /** Between two rounds, by a single statement. */
  ask<T>(question: (session: SqlSession) => Promise<T>): Promise<T>;
  giveUp(): Promise<void>;
}

export function roundSession(config: PostgresSourceConfig): RoundSession {
  let connected: Promise<Client> | undefined;
  let isBusy = false;
  const giveUp = async (): Promise<void> => {
    const client = await connected?.catch(() => undefined);
    connected = undefined;
    await client?.end().catch(() => undefined);
  };
  const begin = async <T>(use: (client: Client) => Promise<T>): Promise<T> => {
    if (isBusy) throw new VitrinaError("INTERNAL", "A round was opened before the one before it was closed.");
    isBusy = true;
    try {
      connected ??= connectToSource(config);
      return await use(await connected);
    } catch (error) {
      isBusy = false;
      const client = await connected?.catch(() => undefined);
      const failure = client === undefined ? error : await lockedSourceError(client, error);
      await giveUp();
      throw failure;
    }
  };
  const end = (): void => {
    isBusy = false;
  };
  return {
    begin,
    end,
    ask: (question) =>
      begin(async (client) => {
        const answer = await withDeadline(client, 2 * config.readTimeoutMs, config, () => question(client));
        end();
        return answer;
      }),
    giveUp,
  };
}
