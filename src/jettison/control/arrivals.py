"""How fast rows arrive, from when on rows still wait, and how far the arrival column can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from jettison.core.documents import Amount, Moment, Natural
from jettison.core.stats import Stats

CHANGE = 0.3
"""Relative change of the arrival rate from which it is followed at once."""
YEAR_S = 366 * 86_400.0
"""A stamp further from the clock is in another unit, or of another thing."""
_SMOOTHING_S = 2.0
_RECENT_S = 1.0
_STEP_SHOWN = 0.7  # of the rows that a step would add or spare within the last second, how many must show
_MISSING_S = 0.1  # by how much a batch's newest rows must be older than usual to say that some are missing
_SLACK_S = 0.35  # by how much stamps may be off before they prove anything; files fill up before they land
_FIRST_SPAN_S = 1.0  # a first batch whose rows arrived within less tells no rate: sources hand over what they find
_OFFSETS = 16  # batches over which the smallest age of the newest rows is sought
_LEAP_S = 60.0  # a stamp that leaps this far, or goes back a second, is no arrival
_BACK_S = 1.0
_STANDS_S, _ONE_STANDS_S = (
    5.0,
    1.0,
)  # a column that does not advance for this long is no arrival; where all rows are alike
_DISTRUST = 20  # batches for which a column is ignored that has shown to be none


@dataclass
class Arrivals:
    """How many rows arrive per second, and from when on rows still wait in the source.

    A change of rate by more than 30 % is followed at once, a smaller one within some seconds. Rows are counted
    between triggers; where rows were left in the source, between the arrivals of the batch. A first batch tells a rate
    only if its rows arrived over a second or more: after a start the source hands over whatever it finds, and after a
    restart a batch is repeated with the rows that it had before. A step of the load in the middle of a batch shows in the
    rate of its last second, where that is observed: it is believed if the batch as a whole has the rows that such a step
    explains, so that bursts within batches are not taken for one.

    The age of a batch's *newest* rows that all recent batches have in common is nothing that shedding can change: another
    clock, a time zone, a slow delivery. It is `offset_s`, and all times here are by the engine's clock: stamps plus it. A
    backlog is told apart from it by rows that an earlier batch had passed over, or by the source's own word. A column that
    stands still, goes back, leaps or is more than a year off is not one of arrivals and is ignored.

    Examples
    --------
    >>> from jettison.core.stats import PointStats
    >>> arrivals = Arrivals()
    >>> for n in range(3):
    ...     arrivals.observe(Stats(n, started_s=2.0 * n, duration_s=1.0, points={"p": PointStats(500, 500)}))
    >>> arrivals.rows_per_s, arrivals.served_until_s
    (250.0, 4.0)
    """

    given_cap: int | None = None
    """Cap that the source is said to have."""
    started_s: Moment | None = None
    seen: Natural = 0
    newest_s: Moment | None = None
    advanced: tuple[Moment, Moment] | None = None
    ages_s: list[Moment] = field(default_factory=list)
    distrust: Natural = 0
    rows_per_s: Amount | None = None
    served_until_s: Moment = 0.0
    """Rows that arrived later than this still wait, by the engine's clock."""
    observed: bool = False
    """Whether the last batch told when its rows arrived, credibly."""
    rising: bool = False
    """Whether the last batch had far more rows than the rate before it explains."""
    row_cap: Natural | None = None
    """Rows of a full batch while a cap leaves rows behind in the source, else `None`."""

    @property
    def offset_s(self) -> float:
        """By how much stamps are behind the engine's clock, whatever is done; 0 as long as that is unknown."""
        return min(self.ages_s, default=0.0) if self.distrust == 0 else 0.0

    @property
    def incredible(self) -> bool:
        """Whether the arrival column is ignored because it cannot be one."""
        return self.distrust > 0

    def begin(self) -> None:
        """A process starts: when its first batch's rows arrived is not known from what came before."""
        self.started_s = self.newest_s = self.advanced = None

    def observe(self, stats: Stats) -> None:
        """Learn from one finished batch."""
        oldest_s, newest_s = self._stamps(stats)
        passed_over = capped = False
        behind_s = 0.0
        if oldest_s is not None and newest_s is not None:
            passed_over, capped = self._left_behind(stats, oldest_s, newest_s)
            if not capped:
                self.ages_s = [*self.ages_s[1 - _OFFSETS :], stats.started_s - newest_s]
            oldest_s, newest_s = oldest_s + self.offset_s, newest_s + self.offset_s
            behind_s = stats.started_s - newest_s
        elif self.given_cap is not None:
            capped = stats.seen >= 0.95 * self.given_cap
        first, last = self.started_s, stats.started_s
        if oldest_s is not None and newest_s is not None:
            first = oldest_s if passed_over or capped or first is None else first
            last = newest_s if capped else last
        before = self.rows_per_s
        stamp_s = None if newest_s is None else newest_s - self.offset_s  # the offset itself may have changed
        if first is not None and stamp_s is not None and self.newest_s is not None and self.started_s is not None:
            first = min(first, last - (stamp_s - self.newest_s))  # rows of a file arrived over longer than a batch
        self.newest_s = stamp_s
        self._count(stats, first, last, capped)
        self.rising = before is not None and (self.rows_per_s or 0.0) > (1 + CHANGE) * before
        if not capped and behind_s > _MISSING_S and before is not None and self.rows_per_s is not None:
            # The last rows are missing: they lie in a file that has not landed, the source has paused, or left them.
            fullest = stats.seen / max(last - behind_s - (first or last), 1e-3)
            self.rows_per_s = max(self.rows_per_s, min(before, fullest))
        self.row_cap = max(stats.seen, self.seen if passed_over else 0) if capped else None
        self.started_s, self.seen, self.served_until_s = stats.started_s, stats.seen, last

    def idle(self, now_s: float) -> None:
        """Nothing arrives; what comes after `now_s` is counted afresh."""
        self.rows_per_s, self.row_cap = 0.0, None
        self.started_s = self.served_until_s = now_s

    def cap_for_next(self) -> float:
        """Rows that the next batch can hold at most."""
        caps = [cap for cap in (self.given_cap, self.row_cap) if cap is not None]
        return float(min(caps)) if caps else math.inf

    def _stamps(self, stats: Stats) -> tuple[float | None, float | None]:
        """The batch's stamps, where they can be arrivals."""
        oldest_s, newest_s = stats.oldest_arrival_s, stats.newest_arrival_s
        if oldest_s is None or newest_s is None or not math.isfinite(oldest_s + newest_s):
            self.observed = False
            return None, None
        if self.advanced is None:
            self.advanced = stats.started_s, newest_s
        passed_s, advance_s = stats.started_s - self.advanced[0], newest_s - self.advanced[1]
        leaps = advance_s > _LEAP_S + 100 * passed_s or advance_s < -_BACK_S
        stands_s = _STANDS_S if newest_s > oldest_s else _ONE_STANDS_S
        if leaps or (advance_s <= 0 and passed_s > stands_s) or abs(stats.started_s - newest_s) > YEAR_S:
            self.distrust = _DISTRUST
            self.ages_s.clear()
        elif self.distrust > 0:
            self.distrust -= 1
        if advance_s > 0 or leaps:
            self.advanced = stats.started_s, newest_s
        self.observed = self.distrust == 0
        return (oldest_s, newest_s) if self.observed else (None, None)

    def _left_behind(self, stats: Stats, oldest_s: float, newest_s: float) -> tuple[bool, bool]:
        """Whether the batch took rows that the one before had passed over, and whether it left rows itself."""
        age_s = stats.started_s - newest_s
        ages_s = sorted([*self.ages_s, age_s])
        offset_s = ages_s[0]
        # Ages that come and go belong to large files; those of a backlog grow and grow, and leave the usual ones behind.
        slack_s = _SLACK_S + 3 * (ages_s[len(ages_s) // 4] - offset_s)
        passed_over = self.started_s is not None and self.started_s - oldest_s - offset_s > slack_s
        if stats.waiting_rows is not None:
            return passed_over, stats.waiting_rows > 0
        if self.given_cap is not None:
            return passed_over, stats.seen >= 0.95 * self.given_cap
        return passed_over, passed_over and age_s - offset_s > slack_s

    def _count(self, stats: Stats, first_s: float | None, last_s: float, capped: bool) -> None:
        least_s = _FIRST_SPAN_S if self.started_s is None else 1e-3
        if first_s is None or last_s - first_s <= least_s:
            return
        before, span_s = self.rows_per_s, last_s - first_s
        self._follow(stats.seen / span_s, span_s)
        if before is not None and not capped and self._is_step(stats, before, span_s):
            self.rows_per_s = stats.recent_rows_per_s

    def _is_step(self, stats: Stats, before: float, span_s: float) -> bool:
        """Whether the rate has stepped to that of the batch's last second."""
        recent = stats.recent_rows_per_s
        # A silent second is no step: a cap may have left its rows in the source. That nothing arrives, `idle` says.
        if not recent or span_s < _RECENT_S or abs(self.offset_s) > _SLACK_S or abs(recent - before) <= CHANGE * before:
            return False
        beyond, explained = stats.seen - before * span_s, (recent - before) * min(span_s, _RECENT_S)
        return beyond * explained > 0 and abs(beyond) >= _STEP_SHOWN * abs(explained)

    def _follow(self, sample: float, span_s: float) -> None:
        if self.rows_per_s is None or abs(sample - self.rows_per_s) > CHANGE * self.rows_per_s:
            self.rows_per_s = sample
        else:
            self.rows_per_s += (1 - math.exp(-span_s / _SMOOTHING_S)) * (sample - self.rows_per_s)
