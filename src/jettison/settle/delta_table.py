"""Exact answers in place: in a Delta table, those of settled windows are replaced by them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jettison.core.storage import Folder
from jettison.errors import CheckpointInUse, InvalidInput, Unsupported, explain, refuse
from jettison.runtime.owner import Owner
from jettison.runtime.status import reason
from jettison.settle.answer_shape import SETTLED_AT, Shape
from jettison.settle.settled_record import absolute
from jettison.settle.touched_windows import Window


class DeltaTable:
    """The table to which the live query appends its answers.

    All answers of a settled window are replaced in one commit, so that a reader sees either the approximate or the exact
    ones, and doing it twice changes nothing. Those that are exact now have a time in the column `settled_at`.

    Parameters
    ----------
    spark
        A session that knows Delta.
    name
        Its path, or its name in the catalog.
    shape
        Of the query's answers.
    home
        What lies beside the live query's checkpoint.
    """

    def __init__(self, spark: SparkSession, name: str, shape: Shape, home: Folder) -> None:
        self._is_path = "/" in name
        self.name, self._spark, self._shape = absolute(name) if self._is_path else name, spark, shape
        self._refuse_other_formats()
        columns = self._columns()
        if (others := set(columns) - {SETTLED_AT}) != set(shape.columns):
            hint = "merge into the table to which the live query writes just its answers"
            got = f"columns {sorted(others)}"
            refuse(f"`{name}` must have the answers' columns {sorted(shape.columns)}", got, hint=hint)
        if SETTLED_AT not in columns and _is_held(home):
            hint = f"stop the query, or add the column to the table before it starts: `{SETTLED_AT} TIMESTAMP`"
            got = "the live query runs, and would fail when the column is added"
            refuse(f"`{name}` must have a column `{SETTLED_AT}`", got, hint=hint, error=Unsupported)

    def _refuse_other_formats(self) -> None:
        """Spark would drop a table of any other format and make a new one in its place."""
        if self._is_path:  # which is read as a Delta table, or not at all
            return
        try:
            told = {
                row["col_name"]: row["data_type"] for row in self._spark.sql(f"describe extended {self.name}").collect()
            }
        except PySparkException as error:
            hint = "pass the name of a table that the live query has written to, or its path, with a slash in it"
            raise InvalidInput(
                explain(f"`{self.name}` must be a Delta table", reason(str(error)), hint=hint)
            ) from error
        if (provider := told.get("Provider", "a view")).lower() != "delta":
            hint = "merge into a Delta table; without --merge exact answers are written to --to alone"
            refuse(f"`{self.name}` must be a Delta table", provider, hint=hint, error=InvalidInput)

    def _columns(self) -> list[str]:
        try:
            reader = self._spark.read.format("delta")
            return (reader.load(self.name) if self._is_path else self._spark.table(self.name)).columns
        except PySparkException as error:
            hint = "start Spark with Delta (docs/settle.md), and pass a table that the live query has written to"
            message = explain(f"`{self.name}` must be a Delta table", reason(str(error)), hint=hint)
            raise InvalidInput(message) from error

    def replace(self, windows: Sequence[Window], folder: str) -> None:
        """Put the answers of these windows, which lie in a folder, in the place of those that are there."""
        window = f"`{self._shape.window}`"
        first, last = (_literal(of(one.start_us for one in windows)) for of in (min, max))
        # By the range Delta finds out which files it need not read.
        meant = f"{window}.start >= {first} and {window}.start <= {last} and {self._shape.among(windows)}"
        exact = self._spark.read.parquet(folder)
        writer = (
            exact.write.format("delta").mode("overwrite").option("replaceWhere", meant).option("mergeSchema", "true")
        )
        writer.save(self.name) if self._is_path else writer.saveAsTable(self.name)


def _is_held(home: Folder) -> bool:
    """Whether the live query runs: one that was killed has left its name, and is found out within seconds."""
    try:
        Owner(home).refuse_second()
    except CheckpointInUse:
        return True
    return False


def _literal(at_us: int) -> str:
    """A time in SQL, whatever the session's time zone.

    >>> _literal(1_500_000)
    "TIMESTAMP '1970-01-01T00:00:01.500000+00:00'"
    """
    return f"TIMESTAMP '{(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at_us)).isoformat()}'"
