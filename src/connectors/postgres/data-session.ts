/**
 * Settings shared by every session that prints or reads values as text: what one side prints, the other must read as
 * the same value.
 */
export const EXACT_TEXT_SETTINGS = {
  TimeZone: "UTC",
  DateStyle: "ISO, YMD",
  IntervalStyle: "postgres",
  bytea_output: "hex",
  extra_float_digits: "1",
  lc_monetary: "C",
  // What the guard read as a string must not become something else on a server with the old default.
  standard_conforming_strings: "on",
} as const;
