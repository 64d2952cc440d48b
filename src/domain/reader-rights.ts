/** What to do where the role that reads a source lacks a right. */
export const READER_LACKS_RIGHT =
  "Let the owner of the source run, for the role that reads it, GRANT USAGE ON SCHEMA … and GRANT SELECT ON ALL TABLES IN SCHEMA …; in the main database that role is vitrina_reader, and npx vitrina migrate does it for every schema of SOURCE_SCHEMAS. Or leave out of the query what the message names.";
