"""Uniform shedding at a constant rate: a filter that somebody set for the peak, and that drops at all times."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from jettison.lab.prove.rivals.rival import Entry, Rival, Stage, weighted
from jettison.lab.prove.vocabulary import WEIGHT, Weighted

_PARTS = 1_000_000


def kept_at_random(share: float) -> Column:
    """Whether a row is among this share of all, by a hash of its number."""
    return F.pmod(F.xxhash64("offset"), F.lit(_PARTS)) < F.lit(round(share * _PARTS))


def share_for_peak(stage: Stage) -> float:
    """Share of the rows with which the peak brings as many as the setting says."""
    return min(stage.tuned / stage.load.peak_rows_per_s, 1.0)


def _enter(stage: Stage) -> Entry:
    share = share_for_peak(stage)
    rows = stage.rows().where(kept_at_random(share)).withColumn(WEIGHT, F.lit(1.0 / share))
    return stage.bare(rows, Weighted())


RIVAL = Rival("constant", "uniform shedding at a constant rate", _enter, weighted)
