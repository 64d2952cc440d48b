import { describeFollowKills, followKills, openFollowChaos } from "../support/chaos-follow.ts";

/** Where the target is elsewhere, its rows are there before the meta-store hears of them. */
describeFollowKills("by elsewhere", followKills(), () => openFollowChaos("elsewhere"));
