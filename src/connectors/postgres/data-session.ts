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
  // Otherwise a NULL in an array is read as a text of four letters.
  array_nulls: "on",
  xmloption: "content",
  // The same query is run by several roles, and each may have a default of its own.
  transform_null_equals: "off",
} as const;
