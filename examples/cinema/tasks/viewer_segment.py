"""A task in Python: sorts users into segments by how often and how favourably they rate."""

from vitrina_tasks import task


@task(
    name="viewer_segment",
    description="Adds segment: newcomer, fan, critic, or regular.",
    params={
        "few": {"type": "integer", "default": 5, "description": "a newcomer has fewer ratings"},
        "kind": {"type": "number", "default": 7.5, "description": "the lowest average of a fan"},
        "strict": {"type": "number", "default": 5.5, "description": "a critic's average is lower"},
    },
    columns=[("segment", "text")],
)
def viewer_segment(rows, params):
    for row in rows:
        row["segment"] = segment_of(row["rating_count"], row["avg_rating"], params)
    return rows


def segment_of(count, average, params):
    if count < params["few"]:
        return "newcomer"
    if average >= params["kind"]:
        return "fan"
    return "critic" if average < params["strict"] else "regular"
