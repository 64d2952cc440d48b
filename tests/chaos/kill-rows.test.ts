import { describeKills } from "../support/chaos-kills.ts";
import { INCREMENTAL, OLD_TARGET } from "../support/chaos-kinds.ts";

/** Through a code task rows come in no order, so all full loads go the same way; before the first row nothing differs. */
describeKills("rows", [OLD_TARGET, INCREMENTAL], (point) => !/^(claimed|prepared|transaction_begun)/.test(point));
