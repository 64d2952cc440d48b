import { describeKills } from "../support/chaos-kills.ts";

describeKills("push-down");
