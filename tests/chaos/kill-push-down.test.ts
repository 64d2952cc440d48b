import { describeKills } from "../support/chaos-kills.ts";
import { KINDS_BY_PATH } from "../support/chaos-kinds.ts";

describeKills("push-down", KINDS_BY_PATH["push-down"]);
