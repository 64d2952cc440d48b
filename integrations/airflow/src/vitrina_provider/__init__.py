"""Runs, checks and watches the pipelines of Vitrina from Apache Airflow."""
