import type { FollowedTable, ScriptPurpose, SourceInspector } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import type { ApiParts } from "../api.ts";
import { allPipelines } from "../graph/mart-reads.ts";
import { planFor } from "./plan.ts";

/** What the owner of a source runs, for all pipelines that follow it: changes are recorded once for all of them. */
export async function followScript(parts: ApiParts, connection: string, purpose: ScriptPurpose): Promise<string> {
  const { inspector } = parts;
  const following = (await allPipelines(parts)).filter(
    ({ mode, source_connection }) => mode === "follow" && source_connection === connection,
  );
  const [first] = following;
  if (first === undefined && purpose === "install") {
    throw new VitrinaError("NOT_SUPPORTED", `No pipeline follows the source connection "${connection}".`, {
      hint: "Save a pipeline of this connection with mode follow first; the script is made for what it reads.",
    });
  }
  const source = await inspector.source(first ?? { source_type: "postgres", source_connection: connection });
  try {
    if (purpose === "remove") return await source.changesScript({ purpose, tables: [], isComplete: true });
    const { tables, remarks } = await followedTables(parts, source, following);
    if (tables.length === 0 && remarks.length > 0) throw new VitrinaError("FOLLOW_REFUSED", remarks.join(" "));
    const script = await source.changesScript({ purpose, tables, isComplete: remarks.length === 0 });
    return [...remarks.map((remark) => `-- ${remark}\n`), script].join("");
  } finally {
    await source.close();
  }
}

interface FollowedTables {
  readonly tables: readonly FollowedTable[];
  /** Why a pipeline is left out, in one line each. */
  readonly remarks: readonly string[];
}

async function followedTables(
  parts: ApiParts,
  source: SourceInspector,
  following: readonly PipelineConfig[],
): Promise<FollowedTables> {
  const tables: FollowedTable[] = [];
  const remarks: string[] = [];
  for (const config of following) {
    const refused: string[] = [];
    try {
      const { plan } = await planFor(parts, source, config);
      refused.push(...plan.refusals.map(({ message, wayOut }) => `${message} ${wayOut}`));
      if (refused.length === 0) tables.push(...plan.tables);
    } catch (error) {
      // A source that is away concerns all of them.
      const isOfThisOne = error instanceof VitrinaError && error.retry !== "reconnect" && error.code !== "INTERNAL";
      if (!isOfThisOne) throw error;
      refused.push(error.message);
    }
    for (const message of refused) remarks.push(`Without ${config.name}: ${message.replaceAll(/\s+/g, " ")}`);
  }
  return { tables, remarks };
}
