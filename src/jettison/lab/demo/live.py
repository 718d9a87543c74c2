"""What the demo shows while it runs: one changing panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jettison.lab.demo.experiment import Moment, Watch

_LINE_EVERY_S = 4.0


@contextmanager
def shown(console: Console, title: str, bound_s: float) -> Iterator[Watch]:
    """Yields what shows a moment of a run; the terminal is given back at the end."""
    console.print(title, highlight=False)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            yield lambda moment: live.update(_panel(moment, bound_s))
        return
    next_s = -math.inf

    def show_line(moment: Moment) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _LINE_EVERY_S
            console.print(_line(moment, bound_s), highlight=False, soft_wrap=True)

    yield show_line


def _line(moment: Moment, bound_s: float) -> str:
    over = " OVER" if moment.latency_s > bound_s else ""
    return (
        f"  {moment.elapsed_s:5.0f} of {moment.total_s:.0f} s  arriving {moment.arrival_rows_per_s:9,.0f} rows/s  "
        f"kept {moment.kept_fraction:6.1%}  latency {moment.latency_s:5.1f} s (bound {bound_s:g} s){over}"
    )


def _panel(moment: Moment, bound_s: float) -> Panel:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=10)
    grid.add_column(width=22, justify="right")
    grid.add_column(width=40)
    style = "red" if moment.latency_s > bound_s else "green"
    progress = f"{moment.elapsed_s:.0f} of {moment.total_s:.0f} s"
    grid.add_row("progress", progress, _bar(moment.elapsed_s, moment.total_s))
    grid.add_row("arriving", f"{moment.arrival_rows_per_s:,.0f} rows/s", "")
    grid.add_row("kept", f"{moment.kept_fraction:.1%}", _bar(moment.kept_fraction, 1.0))
    latency = Text(f"{moment.latency_s:.1f} s of {bound_s:g} s", style=style)
    grid.add_row("latency", latency, _bar(min(moment.latency_s, 4 * bound_s), 4 * bound_s, style))
    return Panel(Group(grid, Text(moment.note, style="dim")), title=moment.run, width=90)


def _bar(value: float, total: float, style: str = "cyan") -> ProgressBar:
    return ProgressBar(total=total, completed=value, width=40, complete_style=style, finished_style=style)
