"""Several queries that share one input, and the common beat on which their windows are dropped together.

A row can only be dropped when no query needs it, so all queries decide at once: for a *unit*, a stretch of time as
long as the least common multiple of their slides. A pipeline alone is a fan of one, and a unit is one window.

Where no drop of windows within their gaps is enough, admission control says which queries to shut down.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from jettison.errors import refuse
from jettison.policies.window.window_choice import check_gap, highest_share
from jettison.policies.window.window_needs import Pipeline

_EASE = 1.25  # a query is opened again only when there is this much more room than it needs


@dataclass(frozen=True)
class Branch:
    """One query over the shared input.

    Parameters
    ----------
    name
        Unique in the fan.
    pipeline
        Its windows.
    max_gap
        Most consecutive answers that may be missing.
    cost
        Work of this query relative to the others; only admission control looks at it.
    """

    name: str
    pipeline: Pipeline
    max_gap: int
    cost: float = 1.0

    def __post_init__(self) -> None:
        check_gap(self.max_gap)
        if not (math.isfinite(self.cost) and self.cost > 0):
            refuse(
                "`cost` must be positive",
                repr(self.cost),
                where=f"query {self.name!r}",
                hint="1 where all queries cost about the same",
            )


@dataclass(frozen=True)
class Fan:
    """Queries over one input; unit `u` holds each query's windows that start in `[base + u * length, + length)`.

    Parameters
    ----------
    branches
        The queries, at least one, each with a name of its own.
    beat
        Length of a unit and start of unit 0; by default the least common multiple of the slides and the first offset.
    """

    branches: tuple[Branch, ...]
    beat: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        names = [branch.name for branch in self.branches]
        if not names or len(set(names)) < len(names):
            refuse(
                "each query needs a name of its own",
                f"{names!r}",
                hint="pass at least one query, and rename those that share a name",
            )

    @cached_property
    def length(self) -> int:
        """Length of a unit: all queries start a window at its beginning if their offsets agree."""
        if self.beat is not None:
            return self.beat[0]
        return math.lcm(*(branch.pipeline.final.slide for branch in self.branches))

    @cached_property
    def base(self) -> int:
        if self.beat is not None:
            return self.beat[1]
        return self.branches[0].pipeline.final.offset

    def without(self, names: Collection[str]) -> Fan:
        """The other queries alone, on the same units."""
        return Fan(tuple(b for b in self.branches if b.name not in names), (self.length, self.base))

    def gap_in_units(self, branch: Branch) -> int:
        """How many units in a row this query can miss; 0 where not even one."""
        return branch.max_gap // self.windows_in_unit(branch)

    def windows_in_unit(self, branch: Branch) -> int:
        """How many windows of a query each unit decides."""
        return self.length // branch.pipeline.final.slide

    @cached_property
    def max_gap(self) -> int:
        """How many units in a row every query can miss; 0 where some query tolerates less than one."""
        return min(self.gap_in_units(branch) for branch in self.branches)

    @cached_property
    def has_overlap(self) -> bool:
        """Whether longer runs let more rows be dropped: some row takes part in answers of two units."""
        starts = {(branch.pipeline.final.offset - self.base) % branch.pipeline.final.slide for branch in self.branches}
        return starts != {0} or any(branch.pipeline.has_overlap for branch in self.branches)

    def unit(self, branch: Branch, window: int) -> int:
        return (branch.pipeline.final.start(window) - self.base) // self.length

    def windows(self, branch: Branch, unit: int) -> range:
        grid, start = branch.pipeline.final, self.base + unit * self.length
        first = -((grid.offset - start) // grid.slide)  # the first start at or after the unit's
        return range(first, first + self.windows_in_unit(branch))

    def void(self, unit: int) -> bool:
        """Whether none of the unit's windows can ever have an answer."""
        return all(branch.pipeline.void(n) for branch in self.branches for n in self.windows(branch, unit))

    def partly_void(self, unit: int) -> bool:
        """Whether some query has no window in the unit that can ever have an answer."""
        return any(all(b.pipeline.void(n) for n in self.windows(b, unit)) for b in self.branches)

    def first_unit_after(self, time: int) -> int:
        """The earliest unit none of whose answers a row at or before `time` takes part in."""
        return 1 + max(self.unit(branch, branch.pipeline.last_holding(time)) for branch in self.branches)

    def first_unit_open_at(self, watermark: int) -> int:
        """The earliest unit with an answer that is still open at `watermark`."""
        return min(self.unit(branch, branch.pipeline.final.first_ending_after(watermark)) for branch in self.branches)

    def spared(self, unit: int, run: int) -> int:
        """Time whose rows nobody needs while `run` units are dropped between two that are kept, near `unit`."""
        before = max(b.pipeline.need_near(self.windows(b, unit).stop - 1, -1)[1] for b in self.branches)
        after = min(b.pipeline.need_near(self.windows(b, unit + run + 1).start, 1)[0] for b in self.branches)
        return max(0, after - before)


@dataclass(frozen=True, slots=True)
class Admission:
    """Queries that stay open, and the share of their work that may be done.

    Parameters
    ----------
    shut
        Names of the queries that deliver nothing, the costliest first.
    share
        Share of the open queries' rows that may be processed.
    enough
        Whether that share can be reached within the gaps of the open queries.
    """

    shut: tuple[str, ...]
    share: float
    enough: bool


def admit(fan: Fan, share: float, *, already_shut: tuple[str, ...] = ()) -> Admission:
    """Shut down the costliest query whose gap stands in the way, then the next, until the rest fits `share`.

    The last query is never shut: a query that may not miss more than its gap is late rather than silent, and
    `enough` says so. A query that is shut already is opened again only when there is room to spare.

    >>> from jettison.policies.window import Grid, Pipeline
    >>> hourly = Branch("hourly", Pipeline((Grid(60, 60),)), max_gap=1, cost=9.0)
    >>> daily = Branch("daily", Pipeline((Grid(60, 60),)), max_gap=9, cost=1.0)
    >>> admit(Fan((hourly, daily)), 0.6).shut, admit(Fan((hourly, daily)), 0.3).shut
    ((), ('hourly',))
    """
    total = _cost(fan)
    shut: list[str] = []
    while share < 1.0 and len((rest := fan.without(shut)).branches) > 1:
        # The queries that tolerate the smallest number of units hold all others back.
        in_the_way = [branch for branch in rest.branches if rest.gap_in_units(branch) == rest.max_gap]
        costliest = max(in_the_way, key=lambda branch: branch.cost)
        ease = _EASE if costliest.name in already_shut else 1.0
        if least_keep(rest) * _cost(rest) / total * ease <= share:
            break
        shut.append(costliest.name)
    rest = fan.without(shut)
    allowed = min(share * total / _cost(rest), 1.0)
    return Admission(tuple(shut), allowed, enough=least_keep(rest) <= allowed + 1e-9)


def least_keep(fan: Fan) -> float:
    """Smallest share of rows that must be kept to stay within every gap."""
    if fan.max_gap < 1:
        return 1.0
    spared = fan.spared(0, fan.max_gap)
    return 1.0 - highest_share(fan.max_gap) * spared / (fan.max_gap * fan.length)


def _cost(fan: Fan) -> float:
    return sum(branch.cost for branch in fan.branches)
