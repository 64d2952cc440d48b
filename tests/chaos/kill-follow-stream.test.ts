import { describeFollowKills } from "../support/chaos-follow.ts";

describeFollowKills("stream");
