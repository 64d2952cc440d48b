import { startRunner } from "../../src/main/runner.ts";
import { createLog } from "../../src/observability/log.ts";
import { createPipeline, startTestApi, type TestApi } from "./api-client.ts";

/** A real API and a real runner on one database with a readable schema `content`. */
export interface ApiWithRunner extends TestApi {
  startRunner(): Promise<void>;
  stopRunner(): Promise<void>;
  /** A pipeline whose target is created when missing. */
  create(name: string, config: object): Promise<string>;
}

export async function startApiWithRunner(settings: Record<string, string> = {}): Promise<ApiWithRunner> {
  const api = await startTestApi(settings);
  await api.database.query("CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader");
  await api.database.query("ALTER DEFAULT PRIVILEGES IN SCHEMA content GRANT SELECT ON TABLES TO vitrina_reader");
  let stopRunner = async (): Promise<void> => undefined;
  return {
    ...api,
    async startRunner() {
      const runner = await startRunner(api.database.settings, api.database.urls, createLog({ level: "silent" }));
      stopRunner = () => runner.stop();
    },
    async stopRunner() {
      await stopRunner();
      stopRunner = async () => undefined;
    },
    create: (name, config) => createPipeline(api, name, { create_target: true, ...config }),
    async stop() {
      await stopRunner();
      await api.stop();
    },
  };
}
