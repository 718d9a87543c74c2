"""`jettison dashboard`, `jettison report` and `jettison top`.

Nothing is asked of the running query, so they work from any process that reaches the checkpoint, also after the end.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from os.path import commonpath
from pathlib import Path

from rich.console import Console

from jettison.core import storage
from jettison.errors import InvalidInput, refuse
from jettison.page.html_page import whole
from jettison.page.server import PageServer, Watched, is_loopback
from jettison.page.terminal import screen, watch
from jettison.page.view import Query


def run_dashboard(console: Console, checkpoints: Sequence[str], *, host: str, port: int) -> None:
    """Serve the page until interrupted, which is how it ends in good order."""
    found = opened(checkpoints)
    for query in found:  # it may be about to start
        if (view := query.view()).state == "unknown":
            console.print(f"{view.name}: {view.state_text}", markup=False, highlight=False, soft_wrap=True)
    queries = Watched(found)
    server = PageServer(queries, host, port, _measures(queries))
    if not is_loopback(host):
        console.print(f"Everybody who reaches {host} can read this page.", highlight=False)
    sent = _sent(queries)
    console.print(f"{server.url}  (Ctrl-C ends it)", highlight=False)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        console.print()
    finally:
        server.server_close()
        sent()


def run_report(console: Console, checkpoints: Sequence[str], path: Path) -> None:
    """Write the page as it is now into one file."""
    queries = opened(checkpoints)
    for checkpoint in checkpoints:
        storage.known_home(checkpoint)
    text = whole([query.view() for query in queries])
    path.write_text(text, "utf-8")
    console.print(f"{path}: {len(text) / 1e6:.1f} MB, to be opened in any browser", highlight=False)


def run_top(console: Console, checkpoint: str, *, every_s: float | None = None) -> None:
    """Print the query once, or show it on the whole screen, kept up to date, until q is typed or Ctrl-C."""
    (query,) = opened([checkpoint])
    if every_s is not None:
        watch(console, query, every_s)  # also of a query that is yet to start
        return
    storage.known_home(checkpoint)
    console.print(screen(query.view(), console.width))


def opened(checkpoints: Sequence[str]) -> list[Query]:
    """The queries of these checkpoints, each with a short name that tells it from the others."""
    for checkpoint in checkpoints:
        if "://" not in checkpoint and not Path(checkpoint).is_dir():
            hint = "pass the `checkpoint` of a Shedder, or the query's checkpointLocation"
            refuse("`CHECKPOINT` must be the folder of a query's checkpoint", checkpoint, hint=hint, error=InvalidInput)
    return [Query(checkpoint, name) for checkpoint, name in zip(checkpoints, _names(checkpoints), strict=True)]


def _names(checkpoints: Sequence[str]) -> list[str | None]:
    """What is different in their paths.

    >>> _names(["out/rides/checkpoint", "out/fares/checkpoint"]), _names(["out/rides"])
    (['rides', 'fares'], [None])
    """
    parts = [Path(one).parts for one in checkpoints]
    if len(set(parts)) < 2 or any("://" in one for one in checkpoints):
        return [None] * len(checkpoints)
    try:
        first = len(Path(commonpath([str(Path(one)) for one in checkpoints])).parts)
    except ValueError:  # some are relative
        return [None] * len(checkpoints)
    last = 0
    while len({one[len(one) - last - 1] for one in parts}) == 1 and all(len(one) - last - 1 > first for one in parts):
        last += 1
    return ["/".join(one[first : len(one) - last]) or "/".join(one) for one in parts]


def _measures(queries: Watched) -> Callable[[], bytes] | None:
    if importlib.util.find_spec("prometheus_client") is None:
        return None
    from jettison.page.prometheus import exposition

    return exposition(queries)


def _sent(queries: Watched) -> Callable[[], None]:
    """Send figures to where OpenTelemetry's environment variables say, if they do; call what is returned at the end."""
    from jettison.page.telemetry import is_asked_for, send

    return send(queries) if is_asked_for() else lambda: None
