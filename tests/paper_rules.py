"""The parameter rules of the paper, for Aurora's windows: integer time, answers stamped with the window's start.

Kept for its worked examples and for comparison. On Spark these sizes are wrong, because nested windows are stamped
with their end there: use `window_needs.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jettison.errors import refuse


@dataclass(frozen=True, slots=True)
class WinDrop:
    """Window size, slide and batch size of a drop operator, or of an aggregate that it stands before.

    The batch size is the most consecutive windows that may be missing.
    """

    size: int
    slide: int
    batch: int = 1


def pipeline(levels: Sequence[WinDrop]) -> WinDrop:
    """One drop before aggregates that feed each other; the first is nearest to the input.

    Forward worst case: the last time in a window opens a new window of the next aggregate. Batch size and slide are
    those of the last aggregate.

    >>> pipeline([WinDrop(3, 2), WinDrop(3, 3)])
    WinDrop(size=5, slide=3, batch=1)
    """
    _some(levels)
    return WinDrop(sum(level.size for level in levels) - (len(levels) - 1), levels[-1].slide, levels[-1].batch)


def fan_out(siblings: Sequence[WinDrop]) -> WinDrop:
    """One drop before aggregates that share an input: it decides where all of them start a window at once.

    The batch size counts windows of the common slide; it is 0 when some sibling tolerates less than one of those.

    >>> fan_out([WinDrop(3, 2, batch=6), WinDrop(3, 3, batch=6)])
    WinDrop(size=7, slide=6, batch=2)
    """
    _some(siblings)
    slide = math.lcm(*(sibling.slide for sibling in siblings))
    extent = max(sibling.size - sibling.slide for sibling in siblings)
    return WinDrop(slide + extent, slide, min(sibling.batch // (slide // sibling.slide) for sibling in siblings))


def _some(parts: Sequence[WinDrop]) -> None:
    if not parts:
        refuse(
            "the rules need one aggregate or more", "none", hint="pass the parameters of each aggregate as a WinDrop"
        )
