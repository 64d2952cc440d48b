import { describeKills } from "../support/chaos-kills.ts";
import { INCREMENTAL, OLD_TARGET } from "../support/chaos-kinds.ts";

/** The target is in another database, so its checkpoint is beside it; how rows are applied makes no difference to that. */
describeKills("elsewhere", [OLD_TARGET, INCREMENTAL], (point) => !/^(claimed|prepared)/.test(point));
