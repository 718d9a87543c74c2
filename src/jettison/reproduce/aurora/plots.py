"""Line plots with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jettison.reproduce.aurora.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = "osv^Dx*P"


def curves(
    xs: Sequence[float],
    series: Mapping[str, Sequence[Interval]],
    *,
    x_label: str,
    y_label: str,
) -> Figure:
    """One line for each series, with error bars."""
    from matplotlib.figure import Figure as NewFigure  # takes a while to import, and only reports need it

    figure = NewFigure(figsize=(7.0, 4.2))
    axes = figure.subplots()
    for number, (name, intervals) in enumerate(series.items()):
        middle = [interval.value for interval in intervals]
        bars = [[i.value - i.lower for i in intervals], [i.upper - i.value for i in intervals]]
        axes.errorbar(xs, middle, yerr=bars, label=name, marker=_MARKERS[number % len(_MARKERS)], capsize=2, lw=1.2)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure
