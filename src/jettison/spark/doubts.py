"""What speaks against calling an answer exact, looked up when the answer is made.

The rows that are left in a group cannot tell whether others are missing, and rows may go after the last one of a group
has come. So an aggregate looks, at the moment at which it makes its answer, into the plan files of the guards in this
application. It finds them through a view, because an aggregate is written without naming its guard.

Each aggregate has a mark. A guarded query that finds the mark in its own plan says on file how to judge that answer
(`jettison.spark.judged`), and no other guard has a say in it. It says so only to answers that were planned before it
started: the same aggregate may be used once more, over rows of which it knows nothing. All other answers, such as those
over rows that were stored or inside of `foreachBatch`, are in doubt from the first row on that any guard of this
application has dropped, also one whose query has ended, and so are their bounds: how often their plan shows a row of the
guard nobody reads. Where there was no guard at all, nobody can vouch for an answer.
"""

from __future__ import annotations

import secrets
import threading

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.runtime.companion import Companion
from jettison.runtime.schedule import DEPENDENT_US, EVERYWHERE, NEVER_US
from jettison.spark.channel import Channel

VIEWS = "jettison_doubts_"
"""What the names of all such views begin with."""
_VIEW = f"{VIEWS}{secrets.token_hex(8)}"
"""Of this process alone: over Spark Connect, all clients of a server share its global views."""
_BEFORE_ALL_TIMES = NEVER_US / 2
_lock = threading.Lock()
"""A view that was made before another guard came must not replace the one that was made after."""
_running: dict[tuple[str, str], tuple[Channel, DataFrame]] = {}
"""Plan files of guards whose queries have not ended, and what they say, by application and path."""
_ended: dict[str, int] = {}
"""What the guards whose queries have ended leave in doubt, by application."""
_companions: list[Companion] = []
"""What else drops rows in queries of this application."""


def register(spark: SparkSession, channel: Channel) -> None:
    """Let answers that are planned from now on look into the plans of `channel`."""
    said = channel.doubts(spark)
    with _lock:
        _running[_application(spark), channel.uri] = channel, said
        _publish(spark)


def started(spark: SparkSession, channel: Channel) -> None:
    """The query of `channel` is planned: what it says of its own answers is for no other.

    Others may multiply its rows, and no plan that anybody reads shows it: once rows were dropped, bounds may be too short.
    """
    key = _application(spark), channel.uri
    with _lock:
        _, said = _running[key]
        first = F.substring_index("doubts", ";", 1)
        nothing_went = first.try_cast("double") <= float(NEVER_US)
        others = F.when(nothing_went, first).otherwise(str(DEPENDENT_US))
        _running[key] = channel, said.select(F.concat(others, F.lit(";")).alias("doubts"))
        _publish(spark)


def unregister(spark: SparkSession, channel: Channel) -> None:
    """The query of `channel` was never started."""
    with _lock:
        if _forgotten(_application(spark), channel):
            _publish(spark)


def ended(spark: SparkSession, channel: Channel, otherwise_us: int) -> None:
    """The query of `channel` has ended, but rows that it kept may have been stored; `otherwise_us` as in `Doubts`."""
    application = _application(spark)
    with _lock:
        _forgotten(application, channel)
        others_us = NEVER_US if otherwise_us <= NEVER_US else DEPENDENT_US
        _ended[application] = max(_ended.get(application, NEVER_US), others_us)
        _publish(spark)


def companion_opened(spark: SparkSession, companion: Companion) -> None:
    """From now on rows may go for which no weight stands; called once, before any query with the companion starts."""
    if not companion.keeps_answers_exact:
        with _lock:
            _ended[_application(spark)] = DEPENDENT_US
            _publish(spark)
    _companions.append(companion)


def companion_closed(companion: Companion) -> None:
    """No query with the companion runs any more."""
    _companions[:] = [other for other in _companions if other is not companion]


def companions_leave_doubt(plan: str) -> bool:
    """Whether the text of a query's plan shows a companion because of which no answer can be called exact."""
    return any(one.operator in plan and not one.keeps_answers_exact for one in _companions)


def doubt(window: Column | str | None) -> Column:
    """How much is in doubt about an answer: 0 for nothing, 1 if it may miss rows, 2 if its bounds are too short as well.

    Rows may be missing if the answer's window begins before the time up to which rows were dropped; without a window, if
    any were dropped at all. The plan is named once only: each mention would be planned again in every micro-batch.
    """
    # As text, which the code that Spark generates only refers to: a number would be written into it and compiled again.
    doubts = F.expr(f"(SELECT doubts FROM global_temp.{_VIEW})")
    spark = SparkSession.builder.getOrCreate()  # in a thread of its own there is no active one, but there is one
    with _lock:
        if not spark.catalog.tableExists(f"global_temp.{_VIEW}"):
            _publish(spark)
    # What stands behind the mark or, where it is not found, at the beginning.
    own = F.substring_index(F.substring_index(doubts, f"{secrets.token_hex(6)}:", -1), ";", 1)
    begins = F.lit(_BEFORE_ALL_TIMES)
    if window is not None:
        start = F.unix_micros((F.col(window) if isinstance(window, str) else window)["start"])
        begins = F.coalesce((start + 1).cast("double"), begins)
    # A time below the first limit falls into bucket 0, one between the limits into 1, one above both into 2.
    bucket = F.width_bucket(own.try_cast("double"), begins, F.lit(float(DEPENDENT_US)), F.lit(1))
    return F.coalesce(bucket, F.lit(1)).cast("int")


def _forgotten(application: str, channel: Channel) -> bool:
    """Whether this very channel was registered, and not another one on the same file since."""
    is_this = _running.get((application, channel.uri), (None,))[0] is channel
    if is_this:
        del _running[application, channel.uri]
    return is_this


def _publish(spark: SparkSession) -> None:
    _latest(spark).createOrReplaceGlobalTempView(_VIEW)


def _latest(spark: SparkSession) -> DataFrame:
    """What all guards of this application say together, as `Doubts.text`; no row, or null, where it is not known."""
    here = _application(spark)
    files = [file for (application, _), (_, file) in _running.items() if application == here]
    before_us = _ended.get(here, NEVER_US if files else DEPENDENT_US)
    if len(files) == 1 and before_us == NEVER_US:
        return files[0]
    if not files:  # Spark plans every expression again in every micro-batch
        return spark.sql(f"SELECT '{float(before_us)!r};' AS doubts")
    # A file that cannot be read says nothing, so everything is in doubt.
    texts = [F.coalesce(file.scalar(), F.lit(EVERYWHERE.text())) for file in files]
    times = [F.substring_index(text, ";", 1).cast("double") for text in texts]
    otherwise = F.greatest(*[F.lit(float(before_us))] * 2, *times)  # it wants two columns at least
    own = F.concat(*[F.substring(text, F.instr(text, ";"), F.length(text)) for text in texts] or [F.lit("")])
    # In two steps: Spark takes no subquery as an argument of a function that takes functions.
    said = spark.sql("SELECT 1").select(otherwise.cast("string").alias("otherwise"), own.alias("own"))
    return said.select(F.concat("otherwise", _latest_last(F.col("own"))).alias("doubts"))


def _latest_last(own: Column) -> Column:
    """What guards say of single answers, the latest times last: of one that several queries have, the last is looked up."""

    def with_time(said: Column) -> Column:
        return F.struct(F.substring_index(said, ":", -1).try_cast("double").alias("until_us"), said.alias("said"))

    sorted_ = F.array_sort(F.transform(F.split(own, ";"), with_time))
    return F.concat(F.lit(";"), F.array_join(F.transform(sorted_, lambda each: each["said"]), ";"), F.lit(";"))


def _application(spark: SparkSession) -> str:
    try:
        return str(spark.sparkContext.applicationId)
    except Exception:  # a session of Spark Connect has no context
        return str(id(spark))
