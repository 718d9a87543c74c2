"""Queries to look at: a live page, a report in one file, and figures for Prometheus and OpenTelemetry.

All of it is read from what lies beside checkpoints. Nothing here steers a query, or needs Spark.
"""
