"""Many batches as few points of a chart: neighbours are put together, and no extreme gets lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

MOST_POINTS, MOST_ANSWERS = 400, 12


class Series(Struct, kw_only=True):
    """Batches over time, in columns; each entry stands for one batch or for several neighbours.

    Parameters
    ----------
    at_s, started_s
        When the last of them ended, and when it began.
    first, last
        Numbers of the batches.
    seen_per_s, kept_per_s
        By drop point, rows per second of the time in which they came: from the start of the batch
        before to that of their own.
    latency_s
        The longest; `None` without rows.
    duration_s
        The longest batch.
    waiting_rows, lag_rows, lag_s
        The most that waited in the source; `None` where it is not on record.
    plan_version
        Of the last batch; `None` where it found no plan.
    exact
        Whether all counts are.
    bounds, bounds_p95
        By answer, half the width of the bounds relative to the answer, in the median and at most in 95 % of the answers; the
        widest of the entry's batches, `None` where no bounded answer came out.
    """

    at_s: list[float]
    started_s: list[float]
    first: list[int]
    last: list[int]
    seen_per_s: dict[str, list[float]]
    kept_per_s: dict[str, list[float]]
    latency_s: list[float | None]
    duration_s: list[float]
    waiting_rows: list[int | None]
    lag_rows: list[int | None]
    lag_s: list[float | None]
    plan_version: list[int | None]
    exact: list[bool]
    bounds: dict[str, list[float | None]]
    bounds_p95: dict[str, list[float | None]]


def thinned(batches: Sequence[Mapping[str, Any]], most: int = MOST_POINTS) -> Series:
    """At most `most` entries that together stand for all batches.

    >>> point = {"seen": 10, "kept": 4, "dropped": 6, "exact": True}
    >>> batch = {"at_s": 0, "duration_s": 2, "latency_s": 2, "plan_version": 1, "points": {"rides": point}}
    >>> series = thinned([{**batch, "batch_id": n, "started_s": 2.0 * n} for n in range(1, 11)], most=5)
    >>> series.last, series.kept_per_s["rides"]
    ([2, 4, 6, 8, 10], [2.0, 2.0, 2.0, 2.0, 2.0])
    """
    names = list(dict.fromkeys(name for batch in batches for name in batch["points"]))
    watched = list(dict.fromkeys(name for batch in batches for name in batch.get("answers", ())))[:MOST_ANSWERS]
    together = -(-len(batches) // most) or 1
    entries = [batches[place : place + together] for place in range(0, len(batches), together)]
    series = Series(
        at_s=[],
        started_s=[],
        first=[],
        last=[],
        seen_per_s={name: [] for name in names},
        kept_per_s={name: [] for name in names},
        latency_s=[],
        duration_s=[],
        waiting_rows=[],
        lag_rows=[],
        lag_s=[],
        plan_version=[],
        exact=[],
        bounds={name: [] for name in watched},
        bounds_p95={name: [] for name in watched},
    )
    # When the rows of the first batch began to come is not on record: it is taken to be as long as the batch.
    since_s = batches[0]["started_s"] - batches[0]["duration_s"] if batches else 0.0
    for entry in entries:
        last = entry[-1]
        span_s = max(last["started_s"] - since_s, 1e-3)
        since_s = last["started_s"]
        series.at_s.append(last["at_s"])
        series.started_s.append(last["started_s"])
        series.first.append(entry[0]["batch_id"])
        series.last.append(last["batch_id"])
        for name in names:
            for rates, what in ((series.seen_per_s, "seen"), (series.kept_per_s, "kept")):
                rates[name].append(sum(batch["points"].get(name, {}).get(what, 0) for batch in entry) / span_s)
        for longest in ("latency_s", "waiting_rows", "lag_rows", "lag_s"):
            known = [batch[longest] for batch in entry if batch.get(longest) is not None]
            getattr(series, longest).append(max(known, default=None))
        series.duration_s.append(max(batch["duration_s"] for batch in entry))
        series.plan_version.append(last["plan_version"])
        for name in watched:
            said = [batch["answers"][name] for batch in entry if name in batch.get("answers", ())]
            for widths, what in ((series.bounds, "median"), (series.bounds_p95, "p95")):
                widths[name].append(max((one[what] for one in said if one[what] is not None), default=None))
        series.exact.append(all(point.get("exact", True) for batch in entry for point in batch["points"].values()))
    return series
