import { describeFollowKills, followKills, openFollowChaos } from "../support/chaos-follow.ts";

describeFollowKills("by stream", followKills(), () => openFollowChaos("stream"));
