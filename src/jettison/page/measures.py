"""The figures of a query that monitoring systems get: their names, kinds and meaning, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from jettison.page.view import QueryView

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure.

    Parameters
    ----------
    name
        As Prometheus has it, but for `_total` at the end of counters.
    help
        In words.
    unit
        "rows", "s" and so on.
    counts
        Whether it only ever grows.
    read
        Its values by labels, of one query; what is not known has none.
    """

    name: str
    help: str
    unit: str
    counts: bool
    read: Callable[[QueryView], Iterable[tuple[Labels, float]]]

    def values(self, views: Iterable[QueryView]) -> Iterator[tuple[dict[str, str], float]]:
        """Its values for all queries, which are told apart by a label."""
        for view in views:
            for labels, value in self.read(view):
                yield {"query": view.name, **labels}, value


def _one(value: float | None) -> list[tuple[Labels, float]]:
    return [] if value is None else [({}, float(value))]


def _last(view: QueryView, name: str) -> list[tuple[Labels, float]]:
    series = getattr(view.model, name) if view.model else []
    return _one(series[-1] if series else None)


def _widths(view: QueryView) -> Iterator[tuple[Labels, float]]:
    """Of the last answers that had bounds."""
    for name, widths in (view.series.bounds if view.series else {}).items():
        if known := [width for width in widths if width is not None]:
            yield {"answer": name}, known[-1]


MEASURES = (
    Measure("jettison_batches", "Micro-batches on record.", "1", True, lambda view: _one(view.batches)),
    Measure(
        "jettison_rows_seen", "Rows that reached a drop point.", "rows", True,
        lambda view: [({"point": point.name}, point.seen) for point in view.points],
    ),
    Measure(
        "jettison_rows_kept", "Rows that a drop point kept.", "rows", True,
        lambda view: [({"point": point.name}, point.kept) for point in view.points],
    ),
    Measure(
        "jettison_rows_dropped", "Rows that a drop point dropped.", "rows", True,
        lambda view: [({"point": point.name}, point.dropped) for point in view.points],
    ),
    Measure(
        "jettison_keep_fraction", "Share of the unprotected rows that the newest plan keeps.", "1", False,
        lambda view: [
            ({"point": point.name}, point.keep_fraction) for point in view.points if point.keep_fraction is not None
        ],
    ),
    Measure(
        "jettison_latency_seconds", "Latency of the row that waited longest in the last batch with rows.", "s", False,
        lambda view: _one(view.latency_s),
    ),
    Measure(
        "jettison_error_bound", "Half the width of answers' bounds relative to the answer, in the median.", "1", False,
        _widths,
    ),
    Measure(
        "jettison_running_batch_seconds", "How long the batch that runs has taken so far.", "s", False,
        lambda view: _one(view.running_batch_s),
    ),
    Measure("jettison_latency_bound_seconds", "The bound.", "s", False, lambda view: _one(view.bound_s)),
    Measure(
        "jettison_arrival_rows_per_second", "Arrival rate as the newest plan took it.", "rows/s", False,
        lambda view: _last(view, "arrival_per_s"),
    ),
    Measure(
        "jettison_capacity_rows_per_second", "Rows per second that can be processed with every row kept.", "rows/s", False,
        lambda view: _last(view, "capacity_per_s"),
    ),
    Measure(
        "jettison_waiting_rows", "Rows that waited in the source when the newest plan was made.", "rows", False,
        lambda view: _last(view, "waiting_rows"),
    ),
    Measure(
        "jettison_left_rows", "Rows that the source had and the last batch did not take, by offsets.", "rows", False,
        lambda view: _one(view.waiting_rows),
    ),
    Measure(
        "jettison_lag_rows", "Rows that had come by the end of the last batch and were in none, where the source is asked.",
        "rows", False, lambda view: _one(view.lag_rows),
    ),
    Measure(
        "jettison_lag_seconds", "How long the oldest of these rows had waited.", "s", False,
        lambda view: _one(view.lag_s),
    ),
    Measure("jettison_plan_version", "Version of the newest plan.", "1", False, lambda view: _one(view.plan_version)),
    Measure(
        "jettison_recent_faults", "Faults among the last 200 starts, stops and faults, by kind.", "1", False,
        lambda view: [({"kind": kind}, count) for kind, count in view.faults.items()],
    ),
    Measure("jettison_running", "1 while the query gives signs of life.", "1", False,
            lambda view: _one(float(view.state == "running"))),
)  # fmt: skip
