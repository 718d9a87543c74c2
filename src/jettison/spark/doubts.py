"""What speaks against calling an answer exact, looked up when the answer is made.

The rows that are left in a group cannot tell whether others are missing, and rows may go after the last one of a group
has come. So an aggregate looks, at the moment at which it makes its answer, into the plan files of the guards in this
application. It finds them through a view, because an aggregate is written without naming its guard: while several guarded
queries run side by side, an answer of one is called exact only where no other dropped rows of that time either.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.schedule import DEPENDENT_US, NEVER_US, UNKNOWN_US
from jettison.spark.channel import Channel

_VIEW = "jettison_doubts"
_files: dict[tuple[str, str], DataFrame] = {}
"""What the plan files of running queries say, by application and path."""


def register(spark: SparkSession, channel: Channel) -> None:
    """Let answers that are planned from now on look into the plans of `channel`."""
    _files[_application(spark), channel.uri] = channel.doubtful_until_us(spark)
    _publish(spark)


def unregister(spark: SparkSession, channel: Channel) -> None:
    """The query of `channel` has ended: no further answer comes from it."""
    if _files.pop((_application(spark), channel.uri), None) is not None:
        _publish(spark)


def doubt(window: Column | str | None) -> Column:
    """How much is in doubt about an answer: 0 for nothing, 1 if it may miss rows, 2 if its bounds are too short as well.

    Rows may be missing if the answer's window begins before the time up to which rows were dropped; without a window, if
    any were dropped at all. The plan is named once only: each mention would be planned anew in every micro-batch.
    """
    spark = SparkSession.getActiveSession()
    if spark is not None and not spark.catalog.tableExists(f"global_temp.{_VIEW}"):
        _publish(spark)
    until_us = F.expr(f"(SELECT doubtful_until_us FROM global_temp.{_VIEW})")
    start_us = (
        F.lit(NEVER_US)
        if window is None
        else F.unix_micros((F.col(window) if isinstance(window, str) else window)["start"])
    )
    # A time below the first limit falls into bucket 0, one between the limits into 1, one above both into 2.
    bucket = F.width_bucket(
        until_us.cast("double"), (start_us + 1).cast("double"), F.lit(float(DEPENDENT_US)), F.lit(1)
    )
    return F.coalesce(bucket, F.lit(1)).cast("int")


def _publish(spark: SparkSession) -> None:
    _latest(spark).createOrReplaceGlobalTempView(_VIEW)


def _latest(spark: SparkSession) -> DataFrame:
    """The latest of the times up to which answers may miss rows; no row, or null, where it is not known."""
    here = _application(spark)
    files = [file for (application, _), file in _files.items() if application == here]
    if len(files) == 1:
        return files[0]
    # A file that cannot be read says nothing, so everything is in doubt. `greatest` wants two columns at least.
    times = [F.coalesce(file.scalar(), F.lit(UNKNOWN_US)) for file in files]
    return spark.sql("SELECT 1").select(F.greatest(F.lit(NEVER_US), F.lit(NEVER_US), *times).alias("doubtful_until_us"))


def _application(spark: SparkSession) -> str:
    try:
        return str(spark.sparkContext.applicationId)
    except Exception:  # a session of Spark Connect has no context
        return str(id(spark))
