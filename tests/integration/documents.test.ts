import { expect, it } from "vitest";
import { documentEncoder } from "../../src/connectors/elasticsearch/documents.ts";

const COLUMNS = [
  { name: "id", type: "bigint" },
  { name: "tags", type: "text[]" },
];

it("a key whose row is there is not deleted, even if the row cannot become a document", () => {
  const encode = documentEncoder(COLUMNS, ["id"], undefined);
  const rows = [
    ["1", "{a}"],
    ["2", "no array"],
    [null, "{}"],
  ];
  const { operations, deletions, rejects } = encode(rows, 7n, [["1"], ["2"], ["3"], ["3"]]);
  expect(operations.map(({ id }) => id)).toEqual(["1"]);
  expect(rejects.map(({ row }) => row[0])).toEqual(["2", null]);
  expect(deletions.map(({ id, lines }) => [id, JSON.parse(lines)])).toEqual([
    ["3", { delete: { _id: "3", version: 7, version_type: "external_gte" } }],
  ]);
});

it("a key finds the document of its row, whatever it is made of", () => {
  const encode = documentEncoder([...COLUMNS, { name: "size", type: "integer" }], ["size", "id"], undefined);
  const long = "9".repeat(600);
  const { operations } = encode([[long, null, ""]], 1n);
  const { deletions } = encode([], 1n, [["", long]]);
  expect(deletions.map(({ id }) => id)).toEqual(operations.map(({ id }) => id));
});
