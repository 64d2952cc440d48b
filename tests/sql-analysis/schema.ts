/**
 * Nine tables whose ids are anything but unique: no keys, no foreign keys, nulls everywhere. Whatever holds for the
 * queries over these holds for well-kept tables, too.
 */
export const TABLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  film: { id: "int", studio_id: "int", country_id: "int", parent_id: "int", title: "text", tags: "text[]" },
  studio: { id: "int", country_id: "int", name: "text" },
  country: { id: "int", name: "text" },
  genre: { id: "int", parent_id: "int", name: "text" },
  film_genre: { film_id: "int", genre_id: "int", place: "int" },
  person: { id: "int", country_id: "int", name: "text" },
  role: { film_id: "int", person_id: "int", kind: "text" },
  rating: { id: "int", film_id: "int", person_id: "int", score: "int" },
  flag: { film_id: "int", kind: "text", score: "int" },
};

export const SCHEMA = `
  CREATE SCHEMA content;
  CREATE SCHEMA marts;
  ${Object.entries(TABLES)
    .map(([table, columns]) => {
      const list = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
      return `CREATE TABLE content.${table} (${list.join(", ")});`;
    })
    .join("\n")}
  CREATE VIEW content.film_score AS
    SELECT r.film_id, count(*) AS votes, sum(r.score) AS score FROM content.rating r GROUP BY r.film_id;
  CREATE VIEW content.genre_of_film AS
    SELECT fg.film_id, g.id AS genre_id, g.name AS genre FROM content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id;
  CREATE VIEW content.credits AS
    SELECT ro.film_id, ro.person_id, p.name, o.votes
      FROM content.role ro JOIN content.person p ON p.id = ro.person_id LEFT JOIN content.film_score o ON o.film_id = ro.film_id;
`;
