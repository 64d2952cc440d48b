import { describeFollowKills } from "../../support/chaos-follow.ts";
import { openSearchFollowChaos, SEARCH_FOLLOW_KILLS } from "../../support/search-chaos.ts";

/** An index is behind its acknowledged requests, and the position behind both: what was sent already is sent again. */
describeFollowKills("into an index", SEARCH_FOLLOW_KILLS, () => openSearchFollowChaos());
