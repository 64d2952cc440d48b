"""A task in Python: sorts films into buckets by their rating."""

from vitrina_tasks import task


@task(
    name="rating_bucket",
    description="Adds bucket: good, average, bad, or unrated.",
    params={
        "column": {"type": "string", "default": "rating", "description": "the column with the rating"},
        "good": {"type": "number", "default": 7, "description": "the lowest rating of a good film"},
        "bad": {"type": "number", "default": 4, "description": "a bad film has less"},
    },
    columns=[("bucket", "text")],
)
def rating_bucket(rows, params):
    for row in rows:
        row["bucket"] = bucket_of(row[params["column"]], params)
    return rows


def bucket_of(rating, params):
    if rating is None:
        return "unrated"
    if rating >= params["good"]:
        return "good"
    return "bad" if rating < params["bad"] else "average"
