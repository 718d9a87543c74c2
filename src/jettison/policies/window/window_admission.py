"""Admission control: which queries to shut down when no drop of windows within their gaps is enough."""

from __future__ import annotations

from dataclasses import dataclass

from jettison.policies.window.query_fan import Branch, Fan
from jettison.policies.window.window_choice import highest_share

_EASE = 1.25  # a query is opened again only when there is this much more room than it needs


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
        costliest = max(_in_the_way(rest), key=lambda branch: branch.cost)
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


def _in_the_way(fan: Fan) -> list[Branch]:
    """The queries that tolerate the smallest number of units: they hold all others back."""
    return [branch for branch in fan.branches if fan.gap_in_units(branch) == fan.max_gap]


def _cost(fan: Fan) -> float:
    return sum(branch.cost for branch in fan.branches)
