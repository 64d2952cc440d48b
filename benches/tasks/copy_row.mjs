/** Looks at every value and changes none. */
export default ({ defineTask }) =>
  defineTask({
    name: "copy_row_ts",
    description: "Copies each row.",
    run: (rows) => rows.map((row) => ({ ...row })),
  });
