import { setTimeout as delay } from "node:timers/promises";
import type { TestDatabase } from "./database.ts";

const LOOK_EVERY_MS = 100;

/** A reader that looks at tables again and again, and remembers every state it saw, in order, without repetitions. */
export interface Watcher {
  seen(relation: string): readonly string[];
  looks(): number;
  stop(): Promise<void>;
}

export function watch(database: TestDatabase, relations: readonly string[]): Watcher {
  const seen = new Map<string, string[]>(relations.map((relation) => [relation, []]));
  let stopped = false;
  let looks = 0;
  const loop = (async () => {
    while (!stopped) {
      for (const [relation, state] of await statesOf(database, relations)) {
        const states = seen.get(relation);
        if (states?.at(-1) !== state) states?.push(state);
      }
      looks += 1;
      await delay(LOOK_EVERY_MS);
    }
  })();
  loop.catch(() => undefined); // met in stop
  return {
    seen: (relation) => seen.get(relation) ?? [],
    looks: () => looks,
    stop: () => {
      stopped = true;
      return loop;
    },
  };
}

/** How many rows each table has, and a sum that tells whether they are the same; all in one statement. */
export async function statesOf(database: TestDatabase, relations: readonly string[]): Promise<Map<string, string>> {
  const rows = await database.query("SELECT r, content.state_of(r, 'title') AS state FROM unnest($1::text[]) r", [
    relations,
  ]);
  return new Map(rows.map(({ r, state }) => [r as string, state as string]));
}

/** In PL/pgSQL, because a table that does not exist yet cannot be named in a plain statement. */
export const STATE_OF = `
  CREATE FUNCTION content.state_of(relation text, value text DEFAULT 't::text') RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    state text;
  BEGIN
    IF to_regclass(relation) IS NULL THEN RETURN 'missing'; END IF;
    EXECUTE format('SELECT count(*) || '' rows, sum '' || coalesce(sum(hashtext(%s)), 0) FROM %s t', value, relation)
       INTO state;
    RETURN state;
  END
  $$`;
