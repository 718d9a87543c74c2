"""The demo's results for people (summary, picture) and for programs (JSON)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display is needed to write a file

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from jettison.demo.experiment import Run
from jettison.demo.schedule import Phase
from jettison.demo.verdict import SETTLING_BATCHES, Answers, Latency, overload_span

_NOT_JUDGED = "no batch to judge"
_PLAIN, _SHED, _BOUND = "#c0392b", "#1f6f8b", "#555555"


def to_document(
    *,
    bound_s: float,
    capacity_rows_per_s: float,
    overload: float,
    plain: Latency,
    shed: Latency,
    kept_fraction: float | None,
    kept_fraction_variation: float | None,
    batches_not_counted: int,
    answers: Answers,
) -> dict[str, Any]:
    """All results as one JSON-safe document; its keys are part of the command's promise."""
    return {
        "latency_bound_s": bound_s,
        "capacity_rows_per_s": round(capacity_rows_per_s),
        "overload": overload,
        "plain": _latency_fields(plain),
        "shed": {
            **_latency_fields(shed),
            "kept_fraction": kept_fraction,
            "ideal_kept_fraction": min(1.0, 1.0 / overload),
            "kept_fraction_variation": kept_fraction_variation,
            "batches_not_counted": batches_not_counted,
            **asdict(answers),
        },
    }


def save(document: dict[str, Any], path: Path) -> None:
    """Write the document as JSON."""
    path.write_text(json.dumps(document, indent=2) + "\n")


def summary(document: dict[str, Any], console: Console) -> None:
    """Print the results side by side, and what they mean in words."""
    plain, shed, bound = document["plain"], document["shed"], document["latency_bound_s"]
    title = f"Rows arriving at {document['overload']:g} times the capacity, after the first {SETTLING_BATCHES} batches"
    table = Table(title=title)
    for column in ("", "plain Spark", "with Jettison"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("row latency, 95 % of rows within", *(_seconds(r["latency_p95_s"]) for r in (plain, shed)))
    table.add_row("row latency, worst", *(_seconds(r["latency_worst_s"]) for r in (plain, shed)))
    table.add_row("latency grows by", *(f"{r['latency_growth_s_per_s']:+.2f} s per s" for r in (plain, shed)))
    table.add_row(
        "rows of the overload without an answer at the end", *(f"{r['unanswered_rows']:,}" for r in (plain, shed))
    )
    table.add_row("arrivals: files landed late by at most", *(f"{r['feed_late_s']:.2f} s" for r in (plain, shed)))
    kept = _percent(shed["kept_fraction"], 1, none=_NOT_JUDGED)
    table.add_row("rows kept", "", f"{kept} (at best {shed['ideal_kept_fraction']:.1%})")
    table.add_row("mean relative error of an answer", "", _percent(shed["mean_relative_error"], 2))
    table.add_row(
        "answers whose 95 % bounds hold", "", f"{_percent(shed['bounds_coverage'], 1)} of {shed['answers']:,}"
    )
    table.add_row("groups missing", "", str(shed["groups_missing"]))
    console.print(table)
    if minutes := document.get("first_minute"):
        console.print(_first_minute(minutes["plain"], minutes["shed"]))
    console.print(_verdict(shed["latency_p95_s"], shed["judged_batches"], bound), highlight=False)


def _first_minute(*runs: dict[str, Any]) -> Table:
    table = Table(
        "", "plain Spark", "with Jettison", title="The first minute of a cold process, from the first batch on"
    )
    table.add_row("first batch took", *(_seconds(run["first_batch_s"]) for run in runs))
    table.add_row("row latency, 95 % of rows within", *(_seconds(run["latency_p95_s"]) for run in runs))
    table.add_row("row latency, worst", *(_seconds(run["latency_worst_s"]) for run in runs))
    for name, what in (("kept_below_capacity", "rows kept before the overload"), ("kept_fraction", "rows kept in all")):
        table.add_row(what, *(_percent(run[name], 1, none=_NOT_JUDGED) for run in runs))
    return table


def _verdict(p95_s: float | None, judged_batches: int, bound_s: float) -> str:
    """Rows that still wait can break the bound, but without a batch to judge nothing shows that it was held."""
    if p95_s is not None and p95_s > bound_s:
        return f"The latency bound of {bound_s:g} s was NOT held with Jettison."
    if not judged_batches:
        return (
            f"Whether the latency bound of {bound_s:g} s was held with Jettison is not known: the overload had no batch "
            f"after its first {SETTLING_BATCHES}. Make the second phase longer with --seconds."
        )
    return f"The latency bound of {bound_s:g} s was held with Jettison."


def _seconds(length_s: float | None) -> str:
    return _NOT_JUDGED if length_s is None else f"{length_s:.1f} s"


def _percent(share: float | None, digits: int, none: str = "nothing was shed") -> str:
    return none if share is None else f"{share:.{digits}%}"


def picture(runs: Sequence[Run], phases: Sequence[Phase], bound_s: float, path: Path) -> None:
    """Latency and kept fraction over time, both runs on one clock; the overload is shaded."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6), sharex=True, height_ratios=(2, 1))
    for run, colour in zip(runs, (_PLAIN, _SHED), strict=True):
        _draw_run(run, colour, above, below)
    above.axhline(bound_s, color=_BOUND, linestyle="--", linewidth=1)
    above.annotate(f"bound {bound_s:g} s", (0, bound_s), xytext=(2, 3), textcoords="offset points", color=_BOUND)
    for axes in (above, below):
        axes.axvspan(*overload_span(phases), color="#f3e9d2", zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    above.set_ylabel("row latency at commit [s]")
    above.set_title("A stream at 0.5, 3 and 0.5 times the capacity: latency and share of rows kept")
    above.legend(frameon=False, loc="upper left")
    below.set_ylabel("kept fraction")
    below.set_ylim(0, 1.05)
    below.set_xlabel("time since start [s]; overload shaded")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_run(run: Run, colour: str, above: Axes, below: Axes) -> None:
    assert run.landing is not None
    time_s = [batch.committed_s - run.started_s for batch in run.batches]
    oldest = [float(batch.latencies(run.landing).max()) for batch in run.batches]
    name = "plain Spark" if run.name == "plain" else "with Jettison"
    if run.batches and run.batches[-1].last < run.landed:  # what still waits at the end is part of the story
        time_s.append(run.ended_s - run.started_s)
        oldest.append(run.ended_s - float(run.landing.arrival_of([run.batches[-1].last])[0]))
    above.plot(time_s, oldest, color=colour, marker="o", markersize=3, label=name)
    times = [batch.started_s - run.started_s for batch in run.batches]
    below.step(times, [batch.kept_fraction for batch in run.batches], where="post", color=colour)


def _latency_fields(latency: Latency) -> dict[str, Any]:
    return {
        "judged_batches": latency.judged_batches,
        "latency_p50_s": latency.p50_s,
        "latency_p95_s": latency.p95_s,
        "latency_worst_s": latency.worst_s,
        "latency_growth_s_per_s": latency.growth_s_per_s,
        "unanswered_rows": latency.unanswered_rows,
        "feed_late_s": latency.feed_late_s,
    }
