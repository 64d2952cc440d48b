import { createPipeline, startTestApi, type TestApi } from "./api-client.ts";

/** A real API, with a runner that comes and goes. */
export interface ApiWithRunner extends TestApi {
  /** A pipeline whose target is created when missing. */
  create(name: string, config: object): Promise<string>;
}

export async function startApiWithRunner(settings: Record<string, string> = {}): Promise<ApiWithRunner> {
  const api = await startTestApi(settings);
  return { ...api, create: (name, config) => createPipeline(api, name, { create_target: true, ...config }) };
}
