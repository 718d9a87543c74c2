"""Policies that plan by group, told of groups without a query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.groups.join_drop import JoinDrop
from jettison.policies.groups.window_tally import WindowTally

Grouping = TypeVar("Grouping", ConceptDrop, JoinDrop)


def told(policy: Grouping, point: str, tallies: Iterable[WindowTally], variation: float | None = None) -> Grouping:
    """The same policy, which now knows this much of the open panes of a drop point."""
    policy.groups.book(point)._open = {tally.start_us: tally for tally in tallies}
    if variation is not None:
        policy.groups._variation[point] = variation
    return policy
