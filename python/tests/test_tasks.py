import io
import json
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal
from pathlib import Path

from vitrina_tasks import task
from vitrina_tasks.problems import TaskProblem
from vitrina_tasks.registry import load_module
from vitrina_tasks.testing import run_task

PYTHON = Path(__file__).resolve().parent.parent
EXAMPLE = PYTHON.parent / "examples" / "cinema" / "tasks" / "rating_bucket.py"


@task(name="plus", params={"n": {"type": "integer", "default": 1}}, columns=[("sum", "numeric")])
def plus(rows, params):
    for row in rows:
        yield {**row, "sum": row["rating"] + params["n"], "votes": row["votes"] + params["n"]}


class RunTaskTest(unittest.TestCase):
    def test_rows_take_the_way_of_a_pipeline(self):
        rows = [{"rating": Decimal("7.50"), "votes": 2**62, "tags": ["a", None]}, {"rating": Decimal(1), "votes": 1}]
        self.assertEqual(
            run_task(plus, rows),
            [
                {"rating": Decimal("7.50"), "votes": 2**62 + 1, "tags": ["a", None], "sum": Decimal("8.50")},
                {"rating": Decimal(1), "votes": 2, "tags": None, "sum": Decimal(2)},
            ],
        )

    def test_the_function_itself_stays_callable(self):
        self.assertEqual(next(plus([{"rating": 1, "votes": 1}], {"n": 2})), {"rating": 1, "votes": 3, "sum": 3})

    def test_what_a_pipeline_refuses_is_refused(self):
        with self.assertRaises(TaskProblem) as caught:
            run_task(plus, [{"rating": Decimal(1), "votes": 2**63 - 1}])
        self.assertEqual(caught.exception.code, "TASK_RESULT_INVALID")
        self.assertIn('row 1, column "votes"', str(caught.exception))
        with self.assertRaises(TaskProblem) as caught:
            run_task(plus, [], {"m": 1, "n": "x"})
        self.assertEqual([problem["pointer"] for problem in caught.exception.problems], ["/m", "/n"])

    def test_types_may_be_given(self):
        (row,) = run_task(plus, [{"rating": "7.5", "votes": "1"}], types={"rating": "numeric(3,1)", "votes": "integer"})
        self.assertEqual(row["sum"], Decimal("8.5"))


class ExampleTest(unittest.TestCase):
    def test_rating_bucket(self):
        (example,) = load_module(EXAMPLE)
        ratings = [Decimal("7.0"), Decimal("6.9"), Decimal("3.9"), None]
        rows = run_task(example, [{"rating": rating} for rating in ratings], {"bad": 4})
        self.assertEqual([row["bucket"] for row in rows], ["good", "average", "bad", "unrated"])

    def test_viewer_segment(self):
        (example,) = load_module(EXAMPLE.with_name("viewer_segment.py"))
        rows = [(2, "9.00"), (5, "7.50"), (5, "7.49"), (5, "5.49")]
        seen = run_task(example, [{"rating_count": count, "avg_rating": Decimal(average)} for count, average in rows])
        self.assertEqual([row["segment"] for row in seen], ["newcomer", "fan", "regular", "critic"])


class TryTest(unittest.TestCase):
    def try_task(self, *arguments, stdin=""):
        command = [sys.executable, "-m", "vitrina_tasks.try", *map(str, arguments)]
        return subprocess.run(command, cwd=PYTHON, input=stdin, capture_output=True, text=True, encoding="utf-8")

    def test_a_file_of_rows_goes_through_a_task(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.ndjson"
            file.write_text('{"title": "Ёлки", "rating": 6.5}\n{"title": "Дюна", "rating": null}\n', encoding="utf-8")
            result = self.try_task(EXAMPLE, "rating_bucket", file, "--params", '{"good": 6}')
        self.assertEqual(result.stderr, "")
        self.assertEqual(
            [json.loads(line) for line in io.StringIO(result.stdout)],
            [
                {"title": "Ёлки", "rating": "6.5", "bucket": "good"},
                {"title": "Дюна", "rating": None, "bucket": "unrated"},
            ],
        )

    def test_mistakes_are_told_in_a_sentence(self):
        unknown = self.try_task(EXAMPLE, "nope", "-")
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("TASK_UNKNOWN", unknown.stderr)
        wrong = self.try_task(EXAMPLE, "rating_bucket", "-", "--params", '{"god": 6}', stdin='{"rating": 1}\n')
        self.assertRegex(wrong.stderr, r"^TASK_PARAMS_INVALID: .*'god'")
        failed = self.try_task(EXAMPLE, "rating_bucket", "-", stdin='{"title": "Dune"}\n')
        self.assertRegex(failed.stderr, r"(?s)^TASK_FAILED: .*rating_bucket.py.*KeyError: 'rating'")


if __name__ == "__main__":
    unittest.main()
