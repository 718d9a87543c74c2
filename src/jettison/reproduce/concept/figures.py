"""The paper's figures and ours, from the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jettison.reproduce.concept.experiments import BIASES, EQUAL_CAPS, SHARES, SHIPPED, Results
from jettison.reproduce.report import Section, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def sections_of(results: Results) -> list[Section]:
    """One section a figure, then those beyond the paper."""
    return [
        _drift(results),
        _rows_processed(results),
        _errors_at_setting(results),
        _volume(results),
        _equal_rows(results),
        _joins(results),
        _borrowing(results),
    ]


def _axes(columns: int = 1, width: float = 6.0) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure as Canvas  # without pyplot: no window system, no global state

    figure = Canvas(figsize=(width * columns, 4.0))
    axes = figure.subplots(1, columns, squeeze=False)
    return figure, list(axes[0])


def _drift(results: Results) -> Section:
    moved = {name: shifts for name, shifts in results.shifts.items() if shifts}
    distance = [float(np.mean([s.distance for s in shifts])) for shifts in moved.values()]
    overlap = [float(np.mean([s.overlap for s in shifts])) for shifts in moved.values()]
    change = [[s.top_change for s in shifts] for shifts in moved.values()]
    rows = [
        [name, *means, float(np.mean(top)), float(np.max(top))]
        for name, *means, top in zip(moved, distance, overlap, change, strict=True)
    ]
    figure, (left, right) = _axes(2)
    left.bar(list(moved), distance)
    right.bar(list(moved), overlap)
    for axes, title in ((left, "distance"), (right, "overlap")):
        axes.set(title=f"concept {title} between windows", ylim=(0, 1))
        axes.tick_params(axis="x", rotation=30)
    header = ["stream", "distance", "overlap", "top ten changed, mean", "at most"]
    return Section("Figure 2: concept distance and overlap", table(header, rows), figure)


def _rows_processed(results: Results) -> Section:
    rows = []
    for (name, bias), at in results.settings.items():
        if bias == 0.98:
            counts = [[float(o.processed) for o in run.outcomes] for run in (at.uniform, at.paper)]
            window = float(np.mean([o.rows for o in at.paper.outcomes]))
            rows.append([name, window, *(stat for c in counts for stat in (np.mean(c), np.percentile(c, 95)))])
    text = (
        "Window latency follows from the rows that reach the query. Here are those rows, which need no engine: all rows, "
        "Uniform at 2 %, and the paper's setting at b = 98 %, which processes more than 2 %.\n\n"
    )
    header = ["stream", "all rows", "Uniform, mean", "95th percentile", "paper's setting, mean", "95th percentile"]
    return Section("Figures 7 and 8: rows that reach the query", text + table(header, rows))


def _errors_at_setting(results: Results) -> Section:
    at_98 = {name: at for (name, bias), at in results.settings.items() if bias == 0.98}
    rows = [
        [
            name,
            at.paper.processed_share,
            *(at.paper.error, at.paper.error_95, at.paper.missing_share),
            *(at.uniform.error, at.uniform.error_95),
            *(at.uniform_same_rows.error, at.equal_caps_same_rows.error),
        ]
        for name, at in at_98.items()
    ]
    bars = {
        "concept": [at.paper.error for at in at_98.values()],
        "concept, 95th": [at.paper.error_95 for at in at_98.values()],
        "Uniform": [at.uniform.error for at in at_98.values()],
        "Uniform, 95th": [at.uniform.error_95 for at in at_98.values()],
    }
    figure, (axes,) = _axes(width=9)
    place = np.arange(len(at_98))
    for number, (label, heights) in enumerate(bars.items()):
        axes.bar(place + 0.2 * number - 0.3, heights, width=0.2, label=label)
    axes.set_xticks(place, list(at_98))
    axes.set(ylabel="mean relative error over groups", title="b = 98 %")
    axes.legend()
    header = ["stream", "rows processed", "error", "95th percentile", "missing", "Uniform at 2 %", "95th percentile"]
    header += ["Uniform at the same rows", "equal caps at the same rows"]
    return Section("Figure 9: error at the paper's setting", table(header, rows), figure)


def _volume(results: Results) -> Section:
    name = results.generated[0].name
    figure, (axes,) = _axes()
    rows: list[list[object]] = []
    for method in ("Uniform", EQUAL_CAPS, SHIPPED, "reservoirs (OASRS)"):
        runs = [results.equal_rows[name, share, method] for share in SHARES]
        axes.plot([100 * r.processed_share for r in runs], [r.error for r in runs], marker="o", label=method)
        rows += [[method, r.processed_share, r.error, r.missing_share] for r in runs]
    papers = [results.settings[name, bias].paper for bias in BIASES]
    axes.plot([100 * r.processed_share for r in papers], [r.error for r in papers], marker="s", label="paper's setting")
    for bias, made in zip(BIASES, papers, strict=True):
        rows.append([f"paper's setting, b = {bias:.0%}", made.processed_share, made.error, made.missing_share])
    axes.set(xlabel="rows processed, %", ylabel="mean relative error over groups", title=name)
    axes.legend()
    text = table(["method", "rows processed", "error", "groups missing"], rows)
    return Section("Figure 10: error against the rows really processed", text, figure)


def _equal_rows(results: Results) -> Section:
    parts = []
    for stream in [*results.generated, *results.real]:
        rows = [
            [
                f"{share:.0%}",
                run.method,
                run.processed_share,
                100 * run.error,
                100 * run.missing_share,
                100 * run.count_error,
            ]
            for (name, share, _), run in results.equal_rows.items()
            if name == stream.name
        ]
        header = [
            "asked",
            "method",
            "rows processed",
            "error of means, %",
            "groups missing, %",
            "error of weighted counts, %",
        ]
        per_group = f"{stream.rows_per_group:.1f} rows a group"
        parts.append(f"**{stream.about}**, {per_group}, 60 micro-batches a window\n\n{table(header, rows)}")
    return Section("All methods at equal rows processed", "\n\n".join(parts))


def _joins(results: Results) -> Section:
    rows = [[f"{o.share:.0%}", o.way, o.processed, 100 * o.error, o.coverage] for o in results.joins]
    header = ["asked", "way", "rows processed", "root mean square error of the count, %", "coverage of 95 % bounds"]
    return Section("Joins", table(header, rows))


def _borrowing(results: Results) -> Section:
    rows = [
        [name, f"{o.share:.0%}", o.coverage, o.coverage_none, 100 * o.direct_error, 100 * o.error, 100 * o.flagged]
        for name, outcomes in results.borrowing.items()
        for o in outcomes
    ]
    header = [
        "stream",
        "rows",
        "coverage",
        "of groups without rows",
        "unbiased error, %",
        "borrowed error, %",
        "flagged, %",
    ]
    return Section("Borrowed estimates", table(header, rows))
