import type { Role } from "../domain/access.ts";

/** The role that each operation of the API needs. An operation that is not listed does not exist for anybody. */
export const ACCESS: Readonly<Record<string, Role | "anyone">> = {
  // Pipelines
  listPipelines: "viewer",
  getPipeline: "viewer",
  createPipeline: "editor",
  updatePipeline: "editor",
  updatePipelineConfig: "editor",
  applyPipelines: "editor",
  deletePipeline: "editor",
  runPipeline: "operator",
  pausePipeline: "operator",
  cancelPipeline: "operator",
  reloadPipelineConfig: "operator",
  restorePreviousTarget: "operator",
  getPipelineStatus: "viewer",
  getPipelineState: "viewer",
  resetPipelineState: "admin",
  keepPipelineState: "admin",
  setPipelineState: "admin",
  getGraph: "viewer",

  // Versions
  listVersions: "viewer",
  getVersion: "viewer",
  diffVersions: "viewer",
  restoreVersion: "editor",

  // Tasks
  listTasks: "viewer",
  getPipelineTasks: "viewer",
  replacePipelineTasks: "editor",

  // Trying out
  validatePipeline: "operator",
  validateConfiguration: "editor",
  previewPipeline: "editor",
  previewQuery: "editor",

  // Following changes
  getFollowPlan: "operator",
  getFollowScript: "operator",
  getFollowStatus: "viewer",

  // Runs
  listAllRuns: "viewer",
  listRuns: "viewer",
  getRun: "viewer",
  getRunLog: "viewer",

  // Events
  watchEvents: "viewer",

  // Runners
  listRunners: "viewer",

  // Access
  createKey: "admin",
  listKeys: "admin",
  revokeKey: "admin",
  listAudit: "admin",

  // Rejected rows
  listRejects: "operator",
  retryRejects: "operator",
  discardRejects: "operator",

  // Reconcile
  requestReconcile: "operator",
  getLastReconcile: "viewer",
  listReconciles: "viewer",
  getReconcile: "viewer",

  // Health
  getMetrics: "viewer",
  getHealth: "anyone",
  getLiveness: "anyone",
  getReadiness: "anyone",
};
