"""Sampling by key with a moving average of counts, as dynsampler's `EMAThroughput`: its docs' advice under a cap.

Every adjustment interval the counts of keys go into an exponential moving average, each key gets a part of the rows in
proportion to the logarithm of its count, and what small keys leave unused goes to the keys after them. A burst of twice the
average is met at once, from the fourth interval on. A new key is kept whole. All is the library's default but for the
interval, which is 2 s in place of 15, in its favour: the bound is 5 s.

References
----------
`honeycombio/dynsampler-go`: `emathroughput.go`, `keyCalculation.go`.
"""

from __future__ import annotations

import numpy as np

from jettison.lab.prove.rivals.by_key import Floats, Keys, KeySampler
from jettison.lab.prove.rivals.rival import Entry, Rival, Stage, guarded
from jettison.lab.prove.vocabulary import Weighted

_WEIGHT = _AGE_OUT = 0.5
_INTERVAL_S, _BURST, _BURST_DELAY, _INITIAL_RATE = 2.0, 2.0, 3, 10.0


class MovingAverage(KeySampler):
    """Rates from logarithms of averaged counts."""

    def __init__(self, group: str, rows_per_s: float) -> None:
        super().__init__(group, rows_per_s)
        self.unknown = 1.0 / _INITIAL_RATE
        self._average: dict[int, float] = {}
        self._counts: dict[int, float] = {}
        self._seconds = 0.0
        self._intervals = 0

    def rates(self, keys: Keys, rows: Floats, seconds: float) -> tuple[Keys, Floats]:
        """The old ones until an interval is over, or a burst is seen."""
        for key, count in zip(keys.tolist(), rows.tolist(), strict=True):
            self._counts[key] = self._counts.get(key, 0.0) + count
        self._seconds += seconds
        threshold = _BURST * sum(max(1.0, count) for count in self._average.values())
        burst = self._intervals >= _BURST_DELAY and sum(self._counts.values()) >= threshold
        if self._seconds < _INTERVAL_S and not burst:
            return self._keys, self._rates
        self._intervals += not burst
        for key in {*self._average, *self._counts}:
            moved = _WEIGHT * self._counts.get(key, 0.0) + (1.0 - _WEIGHT) * self._average.pop(key, 0.0)
            if moved >= _AGE_OUT:
                self._average[key] = moved
        self._counts, self._seconds, self.unknown = {}, 0.0, 1.0
        found = np.array(sorted(self._average), np.int64)
        counts = np.array([self._average[key] for key in found.tolist()])
        return found, logarithmic_rates(counts, self.rows_per_s * _INTERVAL_S)


def logarithmic_rates(counts: Floats, goal: float) -> Floats:
    """Share to keep of each key, by the logarithm of its count; what one leaves unused goes to those after it.

    >>> logarithmic_rates(np.array([10.0, 1000.0]), 100.0).round(3).tolist()
    [1.0, 0.09]
    """
    counts = np.maximum(counts, 1.0)
    logarithms = np.log10(counts)
    ratio = goal / max(float(logarithms.sum()), 1e-9)
    shares, extra = np.ones(len(counts)), 0.0
    for place, (count, logarithm) in enumerate(zip(counts.tolist(), logarithms.tolist(), strict=True)):
        part = extra / (len(counts) - place)
        goal_for_key = max(1.0, logarithm * ratio) + part
        shares[place] = min(goal_for_key / count, 1.0)
        extra += max(goal_for_key - count, 0.0) - part
    return shares


def _enter(stage: Stage) -> Entry:
    return stage.under(MovingAverage(str(stage.workload.group), stage.tuned), Weighted())


RIVAL = Rival(
    "ema",
    "per-key moving-average sampling (dynsampler)",
    _enter,
    guarded,
    fits=lambda workload: workload.group is not None,
)
