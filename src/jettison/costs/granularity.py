"""How many rows to time at once: single rows tell most, but each call of the user's function has its price."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

OVERHEAD_SHARE = 0.01
"""What slices may add to the work: the calls of the function, and our own slicing, timing and joining for each."""
PROBES, SMALLER, LARGER = 3, 8, 4
"""Slices in a row that are taken at another size, and by what they are smaller; larger where slices have few rows."""
FIRST_PROBE, LARGER_EVERY, PROBE_SHARE = 32, 64, 0.0025
"""Slices before the first probes; between larger ones, which blur which key is costly; work that smaller ones may add."""
LARGEST = 65_536
"""Beyond the usual size of an Arrow batch: whole batches then, as the function would get them without timing."""
ROW_NOISE = 1.0
"""By how much a row may miss its estimate, as a share of it, where few slices tell."""
DRIFT = 0.1
"""By how much the price of a call may change from one comparison to the next."""
_OWN_STEP = 1.1


@dataclass(slots=True)
class _Group:
    """Sums over slices of one size: their number, rows, time, estimated work and products of the last two."""

    slices: int = 0
    rows: int = 0
    time: float = 0.0
    work: float = 0.0
    time_time: float = 0.0
    work_work: float = 0.0
    time_work: float = 0.0

    def add(self, rows: int, time_s: float, work: float) -> None:
        self.slices += 1
        self.rows += rows
        self.time += time_s
        self.work += work
        self.time_time += time_s * time_s
        self.work_work += work * work
        self.time_work += time_s * work

    def unexplained(self, per_work: float) -> float:
        """Squared distances of the slices' times from their mean, what their work explains set aside."""
        about = self.time_time - 2.0 * per_work * self.time_work + per_work**2 * self.work_work
        return max(about - (self.time - per_work * self.work) ** 2 / self.slices, 0.0)


@dataclass(slots=True)
class Granularity:
    """Chooses the rows of a slice so that what a slice costs beyond its rows stays below 1 % of the work in it.

    That is the price of a call, which is learned, and our own part, which is measured. The price is learned by
    comparing, among rows that were estimated together: the same work takes longer in small slices than in large ones,
    and the difference is the price of the calls. It counts only as far as it is beyond doubt, because slices that
    are larger than needed blur which key is costly.

    Parameters
    ----------
    rows
        Rows a slice at present; a power of two.

    Examples
    --------
    >>> granularity = Granularity(rows=64)
    >>> for _ in range(500):  # a call costs 1 ms, a row 10 microseconds
    ...     rows = granularity.next_rows(100_000)
    ...     granularity.learn(rows, time_s=0.001 + rows * 1e-5, estimated_s=rows * 1e-5)
    >>> granularity.rows
    16384
    >>> for _ in range(2000):  # a call costs 5 microseconds, a row 1 ms
    ...     rows = granularity.next_rows(100_000)
    ...     granularity.learn(rows, time_s=5e-6 + rows * 0.001, estimated_s=rows * 0.001)
    >>> granularity.rows
    1
    """

    rows: int = 1
    _slices: int = 0
    _pause: int = FIRST_PROBE
    _probes_left: int = 0
    _probing: bool = False
    _before_probes: int = 0  # rows that a slice would have had instead
    _usual: _Group = field(default_factory=_Group)
    _probed: _Group = field(default_factory=_Group)
    _call_s: float = 0.0
    _doubt: float = math.inf  # variance of the price
    _own_s: float = 2e-5
    _longest_s: float = math.inf

    def begin(self, longest_s: float = math.inf) -> None:
        """Rows come that were estimated together; no slice of them should work for longer than `longest_s`."""
        self._longest_s = longest_s
        self._choose()
        self._remember()

    def next_rows(self, available: int) -> int:
        """Rows of the next slice, out of so many."""
        self._slices += 1
        if self._pause > 0:
            self._pause -= 1
            if self._pause == 0:
                if self._probed.slices:
                    self._remember()
                self._probes_left = PROBES
        usual = min(self.rows, available)
        probe = usual // SMALLER if usual >= SMALLER else min(LARGER * usual, available)
        self._probing = self._probes_left > 0 and probe != usual
        if not self._probing:
            return usual
        if self._probes_left == PROBES:
            self._before_probes = usual
        self._probes_left -= 1
        return probe

    def learn(self, rows: int, time_s: float, estimated_s: float, own_s: float = 0.0) -> None:
        """A slice of `rows` rows took `time_s`, of rows estimated at `estimated_s`, and `own_s` of ours around it."""
        if rows <= 0 or time_s <= 0.0 or self._slices <= 1:  # a worker's first call loads libraries
            return
        # A running median: that another process had the core in between is no part of the price.
        self._own_s *= _OWN_STEP if own_s > self._own_s else 1.0 / _OWN_STEP
        group = self._probed if self._probing else self._usual
        # Where nothing is known of the rows, one is as much work as another: only the proportion of slices counts.
        group.add(rows, time_s, estimated_s if estimated_s > 0.0 else float(rows))
        if self._probes_left == 0 and self._pause == 0:
            self._pause = self._next_pause()
            self._choose()
        elif not self._probing and self._usual.slices & (self._usual.slices - 1) == 0:  # the 1st, 2nd, 4th, 8th ...
            self._choose()

    @property
    def call_s(self) -> float:
        """Learned price of a call, as far as it is beyond doubt: two standard errors below the estimate."""
        call_s, doubt = self._combined()
        return max(0.0, call_s - 2.0 * math.sqrt(doubt)) if doubt < math.inf else 0.0

    def _compared(self) -> tuple[float, float] | None:
        """Price of a call and its variance from the slices since the last estimates: a line through two means.

        A regression over all slices would take the noise of the estimates for a price.
        """
        usual, probed = self._usual, self._probed
        if not usual.slices or not probed.slices or usual.slices + probed.slices < 3:
            return None
        work = usual.work / usual.slices, probed.work / probed.slices
        time_s = usual.time / usual.slices, probed.time / probed.slices
        apart = work[0] - work[1]
        if abs(apart) < 0.5 * max(work):
            return None
        call_s = min(max((time_s[1] * work[0] - time_s[0] * work[1]) / apart, 0.0), *time_s)
        per_work = max((time_s[0] - time_s[1]) / apart, 0.0)
        # Noise grows with the work. Few slices may agree by chance, so one row that misses its estimate is added to them.
        surprise = (
            ROW_NOISE**2 * (usual.time + probed.time) ** 2 / (usual.work + probed.work) / (usual.rows + probed.rows)
        )
        noise = surprise + usual.unexplained(per_work) / work[0] + probed.unexplained(per_work) / work[1]
        noise /= usual.slices + probed.slices - 1
        doubt = noise * work[0] * work[1] * (work[1] / usual.slices + work[0] / probed.slices) / apart**2
        return call_s, doubt

    def _combined(self) -> tuple[float, float]:
        found = self._compared()
        if found is None or self._doubt == math.inf:
            return found or (self._call_s, self._doubt)
        known = self._doubt + (DRIFT * self._call_s) ** 2
        trust = known / max(known + found[1], 1e-30)
        return self._call_s + trust * (found[0] - self._call_s), (1.0 - trust) * known

    def _remember(self) -> None:
        self._call_s, self._doubt = self._combined()
        self._usual, self._probed = _Group(), _Group()

    def _choose(self) -> None:
        row_s = self._row_s()
        if row_s <= 0.0 or self._combined()[1] == math.inf:  # nothing to choose by
            return
        wanted = (self.call_s + self._own_s) / (OVERHEAD_SHARE * row_s)
        most = min(wanted, self._longest_s / row_s, LARGEST)
        self.rows = 1
        while self.rows < most:
            self.rows *= 2

    def _row_s(self) -> float:
        """What a row costs beyond its share of a call."""
        usual, probed = self._usual, self._probed
        rows, time_s = usual.rows + probed.rows, usual.time + probed.time
        if not rows:
            return 0.0
        return max(time_s - self.call_s * (usual.slices + probed.slices), 1e-3 * time_s) / rows

    def _next_pause(self) -> int:
        """Slices until the next comparison: probes that are smaller than the rest cost calls."""
        if self._before_probes < SMALLER:
            return LARGER_EVERY
        slice_s = self.call_s + self._before_probes * self._row_s()
        return max(FIRST_PROBE, math.ceil(PROBES * (self.call_s + self._own_s) / (PROBE_SHARE * slice_s)))
