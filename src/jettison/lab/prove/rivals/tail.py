"""Tail sampling by value: rows above a threshold are kept, and of all others a constant share, as samplers of traces do.

A quarter of what may be kept goes to the largest values, which is the threshold's part; it is found in a sample of the rows.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from jettison.lab.prove.prepared import rows_in
from jettison.lab.prove.rivals.constant import kept_at_random, share_for_peak
from jettison.lab.prove.rivals.rival import Entry, Rival, Stage, weighted
from jettison.lab.prove.vocabulary import WEIGHT, Weighted

_LARGE_PART = 0.25
_SAMPLE = 100_000


def _enter(stage: Stage) -> Entry:
    share = share_for_peak(stage)
    large = _LARGE_PART * share
    value = F.expr(str(stage.workload.value))
    sample = (
        rows_in(stage.spark, stage.folder.parent / "prepared", stream=False).limit(_SAMPLE).select(value.alias("v"))
    )
    threshold = sample.agg(F.percentile_approx("v", 1.0 - large)).first()
    is_large = F.coalesce(value > F.lit(threshold[0] if threshold else None), F.lit(False))
    others = (share - large) / (1.0 - large)
    weight = F.when(is_large, F.lit(1.0)).otherwise(F.lit(1.0 / others))
    rows = stage.rows().withColumn(WEIGHT, weight).where((F.col(WEIGHT) == 1.0) | kept_at_random(others))
    return stage.bare(rows, Weighted())


RIVAL = Rival("tail", "tail sampling by value", _enter, weighted, fits=lambda workload: workload.value is not None)
