"""What only one mechanism can show, as lines of a terminal: a label, blocks where there is a course, and words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jettison.page.panels import Panel
from jettison.page.panels.group_shares import GroupShares
from jettison.page.panels.network_picture import NetworkPicture
from jettison.page.panels.region_map import RegionMap
from jettison.page.panels.window_strip import WindowStrip

_MOST = 3  # of groups or regions that a line names
_BLOCK = {"k": "█", "d": "░", "v": "·", "?": "?"}

Line = tuple[str, str, str]


def lines(panel: Panel, width: int) -> Iterator[Line]:
    """The lines of a drawing, with at most `width` blocks; of a table there are none.

    >>> list(lines(WindowStrip(query="answers", first=7, marks="kddk"), width=3))
    [('windows of answers', '░░█', '2 of 4 dropped (█ kept, ░ dropped)')]
    """
    if isinstance(panel, WindowStrip):
        strip = "".join(_BLOCK[mark] for mark in panel.marks)[-width:]
        kept, dropped = panel.marks.count("k"), panel.marks.count("d")  # others have no answer, or are not on record
        said = f"{dropped:,} of {kept + dropped:,} dropped (█ kept, ░ dropped)"
        yield f"windows of {panel.query}", strip, said
    elif isinstance(panel, GroupShares):
        least = ", ".join(f"{group.hash} {share(group.keep_fraction)}" for group in panel.groups[:_MOST])
        named = f": {least}{', ...' if panel.named > _MOST else ''}" if least else ""
        yield f"groups at {panel.point}", "", f"{panel.named:,} thinned{named}; others keep {share(panel.others)}"
    elif isinstance(panel, RegionMap):
        yield f"regions at {panel.point}", "", f"strictest: {'; '.join(_strictest(panel))}"
    elif isinstance(panel, NetworkPicture):
        for node in panel.nodes:
            if node.delivered is not None and node.utility is not None:
                yield f"output {node.name}", "", f"{share(node.delivered)} delivered, utility {node.utility:.3f}"


def share(value: float) -> str:
    """In percent; what is not all, or not nothing, never looks like it.

    >>> share(1.0), share(0.99999), share(0.25), share(0.00001), share(0.0)
    ('100.0%', '> 99.9%', '25.0%', '< 0.1%', '0.0%')
    """
    return "> 99.9%" if 0.9995 <= value < 1.0 else "< 0.1%" if 0.0 < value < 0.0005 else f"{value:.1%}"


def _strictest(panel: RegionMap) -> Iterator[str]:
    """The cells that keep least, with where they lie."""
    keep = np.array(panel.keep)
    for place in np.argsort(keep, axis=None, kind="stable")[:_MOST]:
        row, column = np.unravel_index(place, keep.shape)
        cell = [int(column), int(row)]
        where = [
            f"{name} {_span(panel.edges[axis], panel.values[axis], cell[axis])}"
            for axis, name in enumerate(panel.attributes)
        ]
        yield f"{', '.join(where)} keeps {share(float(keep[row, column]))}"


def _span(edges: list[float], values: list[str], place: int) -> str:
    low, end = edges[place : place + 2]
    return "/".join(values[round(low) : round(end)]) if values else f"{low:.4g}-{end:.4g}"
