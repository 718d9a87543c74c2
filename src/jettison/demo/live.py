"""What the demo shows while it runs: one changing panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jettison.demo.experiment import Moment

_LINE_EVERY_S = 4.0


class View:
    """Shows moments of a run as they come; use it as a context manager around the run."""

    def __init__(self, console: Console, title: str, bound_s: float) -> None:
        self._console = console
        self._title = title
        self._bound_s = bound_s
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._last_line_s = -_LINE_EVERY_S

    def __enter__(self) -> View:
        self._console.print(self._title, highlight=False)
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, moment: Moment) -> None:
        """Show where the run stands."""
        if self._live:
            self._live.update(self._panel(moment))
        elif time.monotonic() - self._last_line_s >= _LINE_EVERY_S:
            self._last_line_s = time.monotonic()
            self._console.print(self._line(moment), highlight=False, soft_wrap=True)

    def _line(self, moment: Moment) -> str:
        over = " OVER" if moment.latency_s > self._bound_s else ""
        return (
            f"  {moment.elapsed_s:5.0f} of {moment.total_s:.0f} s  arriving {moment.arrival_rows_per_s:9,.0f} rows/s  "
            f"kept {moment.kept_fraction:6.1%}  latency {moment.latency_s:5.1f} s (bound {self._bound_s:g} s){over}"
        )

    def _panel(self, moment: Moment) -> Panel:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=10)
        grid.add_column(width=22, justify="right")
        grid.add_column(width=40)
        style = "red" if moment.latency_s > self._bound_s else "green"
        grid.add_row(
            "progress", f"{moment.elapsed_s:.0f} of {moment.total_s:.0f} s", _bar(moment.elapsed_s, moment.total_s)
        )
        grid.add_row("arriving", f"{moment.arrival_rows_per_s:,.0f} rows/s", "")
        grid.add_row("kept", f"{moment.kept_fraction:.1%}", _bar(moment.kept_fraction, 1.0))
        grid.add_row(
            "latency",
            Text(f"{moment.latency_s:.1f} s of {self._bound_s:g} s", style=style),
            _bar(min(moment.latency_s, 4 * self._bound_s), 4 * self._bound_s, style),
        )
        return Panel(Group(grid, Text(moment.note, style="dim")), title=moment.run, width=90)


def _bar(value: float, total: float, style: str = "cyan") -> ProgressBar:
    return ProgressBar(total=total, completed=value, width=40, complete_style=style, finished_style=style)
