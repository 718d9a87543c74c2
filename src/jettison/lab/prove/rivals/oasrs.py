"""Stratified reservoirs (OASRS, StreamApprox): as many rows of each key as of any other, in every interval.

Departure from the paper: a key's reservoir of N rows is a share N / C of its rows, C as counted in the batch before, because
a reservoir in Spark would have to hold rows of a batch that is still being read. The expected sample is the same, and so
are its weights; its size varies.

References
----------
Quoc, Chen, Bhatotia, Fetzer, Hilt, Strufe: StreamApprox: Approximate Computing for Stream Analytics. Middleware 2017.
"""

from __future__ import annotations

import numpy as np

from jettison.lab.prove.rivals.by_key import Floats, Keys, KeySampler
from jettison.lab.prove.rivals.rival import Entry, Rival, Stage, guarded
from jettison.lab.prove.vocabulary import Weighted


class Reservoirs(KeySampler):
    """Equal reservoirs for all keys of the last interval; a key with fewer rows is kept whole.

    >>> keys, rates = Reservoirs("k", rows_per_s=20).rates(np.array([1, 2]), np.array([100.0, 5.0]), 1.0)
    >>> rates.tolist()
    [0.1, 1.0]
    """

    def rates(self, keys: Keys, rows: Floats, seconds: float) -> tuple[Keys, Floats]:
        size = self.rows_per_s * seconds / len(keys)
        return keys, np.minimum(size / np.maximum(rows, 1e-9), 1.0)


def _enter(stage: Stage) -> Entry:
    return stage.under(Reservoirs(str(stage.workload.group), stage.tuned), Weighted())


RIVAL = Rival(
    "oasrs",
    "stratified reservoirs (StreamApprox)",
    _enter,
    guarded,
    fits=lambda workload: workload.group is not None,
)
