import { describeKills } from "../support/chaos-kills.ts";
import { KINDS_BY_PATH } from "../support/chaos-kinds.ts";

describeKills("rows", KINDS_BY_PATH.rows);
