/** What is asked of every tool that runs code of its users: one of seven columns is changed. */
export default ({ defineTask }) =>
  defineTask({
    name: "upper_name",
    description: "Writes names in capital letters.",
    run: (rows) => rows.map((row) => ({ ...row, name: row.name.toUpperCase() })),
  });
