"""A load as dlt's own guide for SQL databases writes it: python load_by_dlt.py replace | replace-in-code | merge"""

import os
import sys

import dlt
from dlt.sources.sql_database import sql_table

kind = sys.argv[1]
rows = sql_table(
    credentials=os.environ["SOURCE_URL"],
    schema="content",
    table="film",
    incremental=dlt.sources.incremental("modified") if kind == "merge" else None,
)
if kind == "replace-in-code":
    rows.add_map(lambda row: {**row, "name": row["name"].upper()})
rows.apply_hints(primary_key="id")
pipeline = dlt.pipeline(
    pipeline_name=os.environ["PIPELINE_NAME"],
    pipelines_dir=os.environ["PIPELINES_DIR"],
    destination=dlt.destinations.postgres(os.environ["TARGET_URL"]),
    dataset_name=os.environ["DATASET"],
)
pipeline.run(rows, table_name="film", write_disposition="merge" if kind == "merge" else "replace").raise_on_failed_jobs()
