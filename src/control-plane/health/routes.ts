import { z } from "zod";
import { problemSchema } from "../error-handler.ts";
import type { Api, ApiParts } from "../server.ts";

const ok = z.object({ status: z.literal("ok") });

export function healthRoutes({ store }: ApiParts) {
  const tags = ["health"];

  return async (api: Api): Promise<void> => {
    const live = { schema: { tags, summary: "The process lives", response: { 200: ok } } };
    api.get("/health", live, () => ({ status: "ok" as const }));
    api.get("/health/live", live, () => ({ status: "ok" as const }));
    api.get(
      "/health/ready",
      {
        schema: {
          tags,
          summary: "The database answers and has the right schema",
          response: { 200: ok, "5xx": problemSchema },
        },
      },
      async () => {
        await store.checkReady();
        return { status: "ok" as const };
      },
    );
  };
}
