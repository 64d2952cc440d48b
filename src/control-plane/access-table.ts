import type { Role } from "../domain/access.ts";

/** The role that each operation of the API needs. An operation that is not listed does not exist for anybody. */
export const ACCESS: Readonly<Record<string, Role | "anyone">> = {
  // Pipelines
  listPipelines: "viewer",
  getPipeline: "viewer",
  createPipeline: "editor",
  updatePipeline: "editor",
  deletePipeline: "editor",
  runPipeline: "operator",
  pausePipeline: "operator",
  restorePreviousTarget: "operator",
  getPipelineStatus: "viewer",
  getPipelineState: "viewer",
  resetPipelineState: "admin",
  keepPipelineState: "admin",

  // Runs
  listRuns: "viewer",
  getRun: "viewer",

  // Rejected rows
  listRejects: "operator",
  retryRejects: "operator",
  discardRejects: "operator",

  // Reconcile
  requestReconcile: "operator",
  listReconciles: "viewer",
  getReconcile: "viewer",

  // Health
  getHealth: "anyone",
  getLiveness: "anyone",
  getReadiness: "anyone",
};
