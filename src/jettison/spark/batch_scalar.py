"""A value beside the rows of a stream that is made once a micro-batch, and knows the batch's own time."""

from __future__ import annotations

from pyspark.sql import DataFrame


def with_scalar(rows: DataFrame, row: DataFrame, name: str) -> DataFrame:
    """The rows with the only column of `row`, a DataFrame of at most one row, under `name`; null where it has none.

    In a scalar subquery `current_timestamp()` would be the time of the attempt, because Spark puts in the batch's own time,
    which it repeats, only where it finds the function outside of subqueries. `WITH` stands outside, and is only later
    moved to where it is named.
    """
    query = f"WITH made AS (SELECT * FROM {{row}}) SELECT *, (SELECT * FROM made) AS {name} FROM {{rows}}"
    return rows.sparkSession.sql(query, row=row, rows=rows)
