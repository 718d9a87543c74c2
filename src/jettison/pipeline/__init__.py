"""Pipelines from a file: what one may say, read and checked without Spark; `jettison.spark.pipeline` runs them."""
