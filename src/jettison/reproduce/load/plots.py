"""Waiting time and drops side by side, as in the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jettison.reproduce.load.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "LAS": "C0",
    "LAS, immediate": "C9",
    "LAS, margin 0.1 apart": "C9",
    "load_aware in turn, the paper's sketch": "C9",
    "ours": "C2",
    "Straw-Man": "C1",
    "Full Knowledge": "0.4",
    "Base Line": "C3",
    "no shedding": "C4",
}


def sweep_plot(sweep: Sweep, label: str, *, logarithmic: bool) -> Figure:
    """Mean of all runs with the span between best and worst, and the bound."""
    figure, waits, drops = _two_panels()
    names = list(dict.fromkeys(one.algorithm for one in sweep.measured))
    for name in names:
        line = sweep.of(name)
        x = [one.x for one in line]
        colour = _COLOURS.get(name)
        waits.plot(x, [one.waits_ms.mean() for one in line], marker="o", label=name, color=colour)
        spans = [one.waits_ms.min() for one in line], [one.waits_ms.max() for one in line]
        waits.fill_between(x, *spans, alpha=0.12, color=colour)
        drops.plot(x, [one.drop_share for one in line], marker="o", color=colour)
    line = sweep.of(names[0])
    waits.plot([one.x for one in line], [one.bound_ms for one in line], "k--", label="bound")
    for axes in (waits, drops):
        axes.set_xlabel(label)
        if logarithmic:
            axes.set_xscale("log")
    waits.legend(fontsize=8)
    return figure


def series_plot(
    x: Sequence[float],
    waits_ms: Mapping[str, Sequence[float]],
    drops: Mapping[str, Sequence[float]],
    bound_ms: float,
    label: str,
    marks: Mapping[float, str] | None = None,
) -> Figure:
    """Both as the stream unfolds, with the starts of its phases."""
    figure, wait_axes, drop_axes = _two_panels()
    for name, values in waits_ms.items():
        wait_axes.plot(x, [max(value, 0.1) for value in values], label=name, color=_COLOURS.get(name))
        drop_axes.plot(x, drops[name], color=_COLOURS.get(name))
    wait_axes.axhline(bound_ms, color="k", linestyle="--", label="bound")
    for axes in (wait_axes, drop_axes):
        axes.set_xlabel(label)
        for start, text in (marks or {}).items():
            axes.axvline(start, color="0.85", zorder=0)
            axes.text(start, axes.get_ylim()[1], text, va="bottom")
    wait_axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.62))
    return figure


def _two_panels() -> tuple[Figure, Axes, Axes]:
    from matplotlib.figure import Figure  # only a report needs it

    figure = Figure(figsize=(11, 4))
    waits, drops = figure.subplots(1, 2)
    waits.set_yscale("log")
    waits.set_ylabel("mean queuing latency, ms")
    drops.set_ylabel("share of rows dropped")
    return figure, waits, drops
