/** Why a ratio is not reached, by its name. */
export const REMARKS = {};
