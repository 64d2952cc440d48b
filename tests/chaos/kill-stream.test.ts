import { describeKills } from "../support/chaos-kills.ts";
import { KINDS } from "../support/chaos-kinds.ts";

describeKills("stream", KINDS);
