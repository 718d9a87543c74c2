"""Waiting time and drops side by side, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {
    "LAS": "C0",
    "ours": "C2",
    "Straw-Man": "C1",
    "Full Knowledge": "0.4",
    "Base Line": "C3",
    "no shedding": "C4",
}
_VARIANT = "C9"


@dataclass(frozen=True, slots=True)
class Line:
    """An algorithm in a plot; `span_ms` are the lowest and highest waits, where several runs were made."""

    name: str
    x: Sequence[float]
    waits_ms: Sequence[float]
    drops: Sequence[float]
    span_ms: tuple[Sequence[float], Sequence[float]] | None = None


def wait_and_drop_plot(
    lines: Iterable[Line],
    bound_ms: Sequence[tuple[float, float]],
    label: str,
    *,
    logarithmic: bool = False,
    phases: Mapping[float, str] | None = None,
) -> Figure:
    """One line an algorithm in both panels, the bound where it lies, and the starts of phases if there are any."""
    from matplotlib.figure import Figure  # only a report needs it

    figure = Figure(figsize=(11, 4))
    waits, drops = figure.subplots(1, 2)
    for line in lines:
        style = {"color": _COLOURS.get(line.name, _VARIANT), "marker": "o" if line.span_ms else None}
        waits.plot(line.x, [max(value, 0.01) for value in line.waits_ms], label=line.name, **style)
        drops.plot(line.x, line.drops, **style)
        if line.span_ms is not None:
            waits.fill_between(line.x, *line.span_ms, alpha=0.12, color=style["color"])
    waits.plot(*zip(*bound_ms, strict=True), "k--", label="bound")
    waits.set_yscale("log")
    waits.set_ylabel("mean wait, ms")
    drops.set_ylabel("share of rows dropped")
    for axes in (waits, drops):
        axes.set_xlabel(label)
        axes.set_xscale("log" if logarithmic else "linear")
        for start, text in (phases or {}).items():
            axes.axvline(start, color="0.85", zorder=0)
            axes.text(start, axes.get_ylim()[1], text, va="bottom")
    waits.legend(fontsize=8)
    return figure
