"""Spark with the best constant cap on a batch: `maxFilesPerTrigger`, as `maxOffsetsPerTrigger` is for Kafka.

Each file holds what arrives in 0.2 s, so a cap on files is one on rows: a batch never grows long, and what is left waits.
Of some sizes that is taken with which the query processes most rows a second, by the median of three runs.
"""

from __future__ import annotations

from dataclasses import replace

from jettison.lab.prove.prepared import INTERVAL_S
from jettison.lab.prove.rivals.rival import Entry, Rival, Stage


def files_of(seconds: float, capacity_rows_per_s: float, peak_rows_per_s: float) -> int:
    """Files of the peak that hold what the plain query processes in so many seconds.

    >>> files_of(2.5, 1_000.0, 3_000.0), files_of(0.1, 1_000.0, 3_000.0)
    (4, 1)
    """
    return max(round(seconds * capacity_rows_per_s / (INTERVAL_S * peak_rows_per_s)), 1)


def _enter(stage: Stage) -> Entry:
    files = files_of(stage.tuned, stage.capacity_rows_per_s, stage.load.peak_rows_per_s)
    return stage.bare(replace(stage, files_per_batch=files).rows())


RIVAL = Rival("capped", "Spark with the best constant cap on a batch", _enter, sizes=(0.5, 1.0, 2.5, 5.0), delays=True)
