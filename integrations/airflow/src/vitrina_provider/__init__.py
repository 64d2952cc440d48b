"""Runs, compares and monitors Vitrina pipelines from Apache Airflow."""
