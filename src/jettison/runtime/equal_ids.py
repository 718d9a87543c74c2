"""Notices rows that share one fate in great numbers: they are equal in what is said to tell them apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.stats import PointStats, Stats

_ENOUGH_ROWS = 1000
_SIGMAS = 6.0
_OFF = 0.1  # of the rows: keys of some hundred rows each are not equal enough yet
_ODD = 5  # batches in a row: equal rows are odd in nearly all of them


class EqualIds:
    """Says, once of each drop point, that in several batches in a row far more or fewer rows were kept than plans keep.

    Examples
    --------
    >>> from jettison.policies.uniform.random_setting import RandomDrop
    >>> half, equal_ids = DropPlan(2, {"rides": RandomDrop(0.5)}), EqualIds()
    >>> said = [equal_ids.batch(Stats(n, 0.0, 1.0, {"rides": PointStats(10_000, 0)}, 2), half) for n in range(7)]
    >>> said[4]
    "0 of 10,000 rows were kept at 'rides' where the plan keeps 50 %: many rows are equal in `row_id`, and share one fate"
    >>> said[:4] + said[5:]
    ['', '', '', '', '', '']
    >>> both, equal_ids = DropPlan(2, {"rides": RandomDrop(0.5), "fares": RandomDrop(0.5)}), EqualIds()
    >>> points = {"rides": PointStats(10_000, 0), "fares": PointStats(10_000, 10_000)}
    >>> *_, said = [equal_ids.batch(Stats(n, 0.0, 1.0, points, 2), both) for n in range(5)]
    >>> "at 'rides'" in said and "at 'fares'" in said
    True
    """

    def __init__(self) -> None:
        self._odd: Counter[str] = Counter()

    def batch(self, stats: Stats, in_force: DropPlan | None, protected: Collection[str] = ()) -> str:
        """Take in a batch that ran under a plan; points that are `protected` may keep any number of rows."""
        said = []
        for name, point in stats.points.items():
            setting = None if in_force is None else in_force.points.get(name)
            if setting is None or setting.keeps_everything or not point.exact or point.seen < _ENOUGH_ROWS:
                continue  # which tells nothing
            self._odd[name] = self._odd[name] + 1 if _is_odd(setting, point, name in protected) else 0
            if self._odd[name] == _ODD:
                keeps = f"{100 * setting.keep_fraction:.0f} %"
                said.append(f"{point.kept:,} of {point.seen:,} rows were kept at {name!r} where the plan keeps {keeps}")
        return f"{' and '.join(said)}: many rows are equal in `row_id`, and share one fate" if said else ""


def _is_odd(setting: Setting, point: PointStats, protected: bool) -> bool:
    if not setting.keeps_a_share:
        return False
    least, most = sorted((setting.keep_fraction, setting.keep_fraction_of_late))
    slack = _OFF * point.seen + _SIGMAS * math.sqrt(point.seen) / 2
    return point.kept < least * point.seen - slack or (not protected and point.kept > most * point.seen + slack)
