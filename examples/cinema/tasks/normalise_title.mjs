/**
 * A task in JavaScript. It needs no build and no import: Vitrina calls the function with everything a task needs.
 *
 * @param {import("../../../src/tasks/define-task.ts").TaskKit} kit
 */
export default ({ defineTask, z }) =>
  defineTask({
    name: "normalise_title",
    description: "Removes needless spaces from titles, and adds title_sort, a title without its leading article.",
    params: z.strictObject({
      column: z.string().default("title").describe("the column with the title"),
      articles: z.array(z.string()).default(["the", "a", "an"]).describe("what title_sort leaves out at the beginning"),
    }),
    columns: [{ name: "title_sort", type: "text" }],
    run(rows, { params: { column, articles } }) {
      for (const row of rows) {
        const given = row[column];
        const title = typeof given === "string" ? given.trim().replace(/\s+/gu, " ") : null;
        row[column] = title;
        row.title_sort = title === null ? null : withoutArticle(title, articles);
      }
      return rows;
    },
  });

/**
 * @param {string} title
 * @param {readonly string[]} articles
 */
function withoutArticle(title, articles) {
  const [first = "", ...rest] = title.split(" ");
  return rest.length > 0 && articles.includes(first.toLowerCase()) ? rest.join(" ") : title;
}
