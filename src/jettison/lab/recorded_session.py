"""A local session that forgets nothing of what it ran, and grows with it: for runs that are judged afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from jettison.spark.session import local_session

# Runs of minutes are read off the progress of their batches.
MANY_BATCHES: Mapping[str, str] = {"spark.sql.streaming.numRecentProgressUpdates": "2000"}
_RECORDED: Mapping[str, str] = {
    # The CPU time of all stages is added up.
    "spark.ui.retainedStages": "100000",
    "spark.sql.ui.retainedExecutions": "100000",
    **MANY_BATCHES,
}


def recorded_session(name: str, *, master: str | None = None) -> AbstractContextManager[SparkSession]:
    """The session of `jettison run`, with all of its stages and two thousand batches of each query kept."""
    return local_session(name, master=master, settings=_RECORDED)
