"""A query in the terminal: the figures of the page in text, once or kept up to date, as large as the window is."""

from __future__ import annotations

import contextlib
import math
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypedDict

from rich.console import Console, Group, OverflowMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jettison.page.panel_lines import lines, share
from jettison.page.panels import TablePanel
from jettison.page.view import Query, QueryView


class _Cut(TypedDict, total=False):
    """How a text that does not fit into its line is cut; empty where it may take several."""

    overflow: OverflowMethod
    no_wrap: bool


_BLOCKS = " ▁▂▃▄▅▆▇█"
_POLL_S = 0.2
_LABEL = 20
_CHANGES = 10  # that are printed where there is no window to fill
_ROWS = 10  # of a table that a panel has
_LEAST_LINES = 12  # of the head, the lines over time, and titles
_STYLES = {"running": "green", "failed": "bold red", "silent": "yellow"}


def watch(console: Console, query: Query, every_s: float) -> None:
    """Show the query on the whole screen until q is typed, or Ctrl-C; it follows the size of the window."""
    with contextlib.suppress(KeyboardInterrupt), _keys() as typed, _live(console) as live:
        while True:
            view, due_s, size = query.view(), time.monotonic() + every_s, None
            while time.monotonic() < due_s:
                if size != console.size:
                    size = console.size
                    live.update(screen(view, size.width, size.height), refresh=True)
                if typed(_POLL_S) in ("q", "Q"):
                    return


def _live(console: Console) -> Live:
    return Live(console=console, screen=True, auto_refresh=False)


def screen(view: QueryView, width: int, height: int | None = None) -> RenderableType:
    """What the query is doing, how that went lately, and why plans changed: in at most `height` lines, or in full."""
    cut: _Cut = {} if height is None else {"overflow": "ellipsis", "no_wrap": True}
    tables = [panel for panel in view.panels if isinstance(panel, TablePanel)]
    line_width = max(width - _LABEL - 14, 10)
    used = _LEAST_LINES + len(view.points) + sum(min(len(panel.rows), _ROWS) + 3 for panel in tables)
    drawn = [_labelled(*line, "cyan") for panel in view.panels for line in lines(panel, line_width // 2)]
    found = [*_facts(view, cut), *_behind(view, line_width), *_errors(view, line_width), *drawn]
    more = found[: None if height is None else max(height - used - 3, 0)]
    parts = [*_head(view, cut), *_lines(view, line_width), *more, _points(view)]
    parts += [part for panel in tables for part in _table(panel, cut)]
    if height is None:
        return Group(*parts, _changes(view, _CHANGES, cut))
    used += len(more)
    return Group(*parts, _changes(view, max(height - used, 3), cut), Text("q: quit", style="dim"))


def sparkline(values: Sequence[float | None], top: float, width: int) -> str:
    """The last values as blocks between 0 and `top`; a blank where there is none.

    >>> sparkline([0.0, None, 5.0, 10.0, 99.0], top=10.0, width=4)
    ' ▄██'
    """
    shown = list(values)[-width:]
    steps = len(_BLOCKS) - 1
    return "".join(
        " " if value is None else _BLOCKS[min(max(math.ceil(steps * value / max(top, 1e-9)), 1), steps)]
        for value in shown
    )


def _plain(text: str) -> str:
    """What comes from data, without anything that a terminal would act on."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _head(view: QueryView, cut: _Cut) -> Iterator[RenderableType]:
    title = Text.assemble((_plain(view.name), "bold"), "  ", (_plain(view.state_text), _STYLES.get(view.state, "dim")))
    if view.policy:
        title.append(f"  {view.policy}{', dry run' if view.dry_run else ''}", style="dim")
    yield title
    about = "about " if view.estimated_batches else ""
    yield Text(f"in all {view.batches:,} batches: {about}{view.kept:,} of {view.seen:,} rows kept")
    if view.orders:
        yield Text(f"set: {_plain('; '.join(view.orders))}", style="yellow", **cut)
    if view.plan_version is not None:
        yet = "" if view.plan_in_use else ", under which no batch on record has run yet"
        yield Text(f"plan {view.plan_version}{yet}: {_plain(view.cause)}", **cut)


def _lines(view: QueryView, width: int) -> Iterator[RenderableType]:
    if view.series is None:
        yield Text("no batch is on record")
        return
    series = view.series
    bound_s = view.bound_s
    top = bound_s or max((value or 0.0 for value in series.latency_s), default=1.0)
    over = view.latency_s is not None and bound_s is not None and view.latency_s > bound_s
    now = "no rows" if view.latency_s is None else f"{view.latency_s:.2f} s"
    bound = "" if bound_s is None else f" of {bound_s:g} s"
    yield _labelled("latency" + bound, sparkline(series.latency_s, top, width), now, "red" if over else "cyan")
    names = [point.name for point in view.points if point.entrance and point.name in series.seen_per_s]
    seen, kept = (
        [sum(by[name][place] for name in names) for place in range(len(series.at_s))]
        for by in (series.seen_per_s, series.kept_per_s)
    )
    most = max(seen[-width:], default=1.0)
    yield _labelled("rows/s that came", sparkline(seen, most, width), f"{seen[-1]:,.0f}", "yellow")
    yield _labelled("rows/s kept", sparkline(kept, most, width), f"{kept[-1]:,.0f}", "cyan")


def _facts(view: QueryView, cut: _Cut) -> Iterator[Text]:
    """What went wrong, in which answers rows may be missing, and what the load was taken to be."""
    if view.faults:
        yield Text(
            _plain("faults: " + ", ".join(f"{kind} {count:,}" for kind, count in view.faults.items())), "yellow", **cut
        )
    if view.answers:
        yield Text(f"answers: {view.answers}", **cut)
    if view.model and (arrive := view.model.arrival_per_s[-1]) is not None:
        yield Text(
            f"{arrive:,.0f} rows/s arrive, {view.model.capacity_per_s[-1]:,.0f} can be processed, says the plan", **cut
        )


def _behind(view: QueryView, width: int) -> Iterator[Text]:
    """Rows that wait in the source, as far as that is on record."""
    if view.series is None:
        return
    for label, rows, last, for_s in (
        ("rows behind", view.series.lag_rows, view.lag_rows, view.lag_s),
        ("rows left behind", view.series.waiting_rows, view.waiting_rows, None),
    ):
        if last is not None:
            line = sparkline(rows, max(one or 0 for one in rows), width)
            yield _labelled(label, line, f"{last:,}" + ("" if for_s is None else f" ({for_s:.1f} s)"), "yellow")


def _errors(view: QueryView, width: int) -> Iterator[Text]:
    """How wide the bounds of watched answers are, in the median."""
    for name, widths in (view.series.bounds if view.series else {}).items():
        if known := [one for one in widths if one is not None]:
            line = sparkline(widths, max(known), width)
            yield _labelled(f"error of {name}", line, f"{known[-1]:.1%}", "magenta")


def _labelled(label: str, line: str, now: str, style: str) -> Text:
    label = f"{_plain(label)[: _LABEL - 1]:<{_LABEL}}"
    return Text.assemble((label, "dim"), (line, style), f" {_plain(now)}", no_wrap=True, overflow="crop")


def _points(view: QueryView) -> Table:
    table = Table("drop point", "plan keeps", "last batch", "seen", "kept", "dropped", box=None, pad_edge=False)
    for point in view.points:
        keeps = "-" if point.keep_fraction is None else share(point.keep_fraction)
        last = f"{point.last_kept:,} of {point.last_seen:,}"
        table.add_row(
            Text(_plain(point.name)), keeps, last, *(f"{rows:,}" for rows in (point.seen, point.kept, point.dropped))
        )
    return table


def _table(panel: TablePanel, cut: _Cut) -> Iterator[RenderableType]:
    yield Text(_plain(": ".join(filter(None, (panel.title, panel.text)))), **cut)
    if panel.rows:
        table = Table(*panel.columns, box=None, pad_edge=False)
        for row in panel.rows[:_ROWS]:
            table.add_row(*(Text(_plain(cell)) for cell in row))
        yield table
    more = f"and {len(panel.rows) - _ROWS} more" if len(panel.rows) > _ROWS else ""
    if said := ". ".join(filter(None, (more, panel.note))):
        yield Text(_plain(said), style="dim", **cut)


def _changes(view: QueryView, most: int, cut: _Cut) -> RenderableType:
    table = Table("when", "what", box=None, pad_edge=False)
    table.add_column("why", **cut)
    for change in view.changes[: -most - 1 : -1]:
        what = f"plan {change.version}" if change.kind == "plan" else change.kind
        when = datetime.fromtimestamp(change.at_s).strftime("%H:%M:%S")
        table.add_row(when, Text(what, style="red" if change.kind == "fault" else ""), Text(_plain(change.text)))
    return table


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """What waits for a key and returns it; where nothing can be typed, it only waits."""
    try:
        import termios
        import tty

        before = termios.tcgetattr(sys.stdin)
    except Exception:  # no terminal, or none of that kind
        yield _wait
        return
    try:
        tty.setcbreak(sys.stdin)
        yield _typed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _wait(within_s: float) -> str:
    time.sleep(within_s)
    return ""


def _typed(within_s: float) -> str:
    ready, _, _ = select.select([sys.stdin], [], [], within_s)
    return sys.stdin.read(1) if ready else ""
