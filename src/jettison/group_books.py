"""What a running query has shown of its groups, drop point by drop point: for policies that plan by group."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.concept.book import ClosedPane, KeptGroups, PaneBook
from jettison.concept.tally import WindowTally
from jettison.plan import DropPlan
from jettison.policies.base import CountsGroups, Policy
from jettison.settings import GroupDrop
from jettison.stats import EventTimes


class GroupBooks:
    """One book of open panes for each drop point; none at all for a policy that does not look at groups.

    Parameters
    ----------
    policy
        Says how long a pane is, if it counts groups.
    points
        Names of the drop points.
    """

    def __init__(self, policy: Policy, points: tuple[str, ...]) -> None:
        books = {name: policy.book() for name in points} if isinstance(policy, CountsGroups) else {}
        self._books: dict[str, PaneBook] = books
        self._variation: dict[str, float] = {}
        self._closed: list[tuple[str, ClosedPane]] = []

    def learn(self, groups: Mapping[str, KeptGroups], in_force: DropPlan | None, times: EventTimes | None) -> None:
        """Take note of a batch: what its kept rows were, and the plan that it ran under."""
        for name, seen in groups.items():
            if name not in self._books:
                continue
            book, setting = self._books[name], in_force.points.get(name) if in_force else None
            book.learn(seen, setting if isinstance(setting, GroupDrop) else None)
            if seen.variation is not None:
                self._variation[name] = seen.variation
            ends = [book.oldest_open_us, times.watermark_us if times else None]
            self._closed += [(name, pane) for pane in book.close(max(end for end in ends if end is not None))]

    def known(self, name: str) -> tuple[tuple[WindowTally, ...], float | None]:
        """What is known of the open panes of a drop point, and of the variation of its values."""
        return (self._books[name].tallies if name in self._books else ()), self._variation.get(name)

    def take_closed(self) -> list[tuple[str, ClosedPane]]:
        """Panes that have closed since this was last asked, with their drop points."""
        closed, self._closed = self._closed, []
        return closed
