// What an API costs that does nothing but ask the meta-store and write the answer: no checks, no logins, no limits.
import fastify from "fastify";
import { openStore } from "../../dist/main/database.js";
import { loadSettings } from "../../dist/settings/settings.js";

const store = openStore(loadSettings().databaseUrls(), "bare", 10);
const server = fastify();
server.get("/ready", async () => "ready");
server.get("/pipelines", () => store.pipelines.list({ limit: 50 }, {}));
server.post("/pipelines/:id/run", async ({ params }) => {
  const { id } = await store.pipelines.get(params.id);
  return store.requests.run(id, "api");
});
await server.listen({ host: "127.0.0.1", port: Number(process.env.API_PORT) });
process.once("SIGTERM", async () => {
  await server.close();
  await store.close();
});
