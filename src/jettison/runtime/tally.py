"""Running totals of a query, and what they teach about its drop points."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jettison.core.answer_bounds import AnswerBounds
from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.core.stats import Stats, share_protected

_SMOOTHING = 0.5
# Below this many rows a batch tells too little about shares.
_ENOUGH_ROWS = 1000


class Tally:
    """Sums over all batches of this run, and two shares learned from exact counts.

    The shares stand in for counts that have not arrived yet: which part of the query's input reaches each drop
    point, and which part of that is protected.

    Parameters
    ----------
    protected
        Names of the drop points that have protected rows; at the others that share is 0.
    expected
        Part of the query's input rows that is expected at drop points before anything has been counted.
    entrance
        Drop points at which rows are counted for the totals; all of them where not given.
    """

    def __init__(
        self,
        protected: frozenset[str] = frozenset(),
        expected: Mapping[str, float] = MappingProxyType({}),
        entrance: frozenset[str] = frozenset(),
    ) -> None:
        self.protected = protected
        self._expected = expected
        self._entrance = entrance
        self.estimated = 0
        self.by_point: dict[str, tuple[int, int]] = {}
        self.batches = 0
        self.seen = 0
        self.kept = 0
        self.last_latency_s: float | None = None
        """Of the last batch that held rows."""
        self.bounds: Mapping[str, AnswerBounds] = MappingProxyType({})
        """By answer, of the last batch out of which any came, where they are watched."""
        self._input_share: dict[str, float] = {}
        self._protected_share: dict[str, float] = {}

    def input_share(self, point: str, points: int) -> float:
        """Part of the query's input rows that reach `point`; what is expected, or an even split, until it is counted."""
        return self._input_share.get(point, self._expected.get(point, 1.0 / points))

    def protected_share(self, point: str) -> float:
        """Part of the rows at `point` that no plan may drop; 0 until rows have been dropped there."""
        return self._protected_share.get(point, 0.0)

    def exact(self, report: BatchReport, stats: Stats, in_force: DropPlan | None) -> None:
        self.batches += 1
        self.estimated += not stats.exact
        for name, point in stats.points.items():
            if not self._entrance or name in self._entrance:
                self.seen += point.seen
                self.kept += point.kept
            seen, kept = self.by_point.get(name, (0, 0))
            self.by_point[name] = (seen + point.seen, kept + point.kept)
            if not point.exact or point.seen < _ENOUGH_ROWS:
                continue
            if report.input_rows:  # Spark reports 0 where it cannot tell
                self._blend(self._input_share, name, point.seen / report.input_rows)
            setting = in_force.points.get(name) if in_force else None
            if name in self.protected and setting is not None and setting.keep_fraction < 0.95:
                protected = share_protected(point.kept / point.seen, setting.keep_fraction)
                self._blend(self._protected_share, name, protected)

    @staticmethod
    def _blend(shares: dict[str, float], name: str, value: float) -> None:
        shares[name] = value if name not in shares else shares[name] + _SMOOTHING * (value - shares[name])
