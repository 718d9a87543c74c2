"""The demo's results for people (summary, picture) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from jettison.lab.demo.experiment import Run
from jettison.lab.demo.schedule import Phase
from jettison.lab.demo.verdict import (
    HELD_BATCHES,
    HELD_SHARE,
    SETTLING_BATCHES,
    Answers,
    Held,
    Kept,
    Latency,
    overload_span,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NO_BATCH = "no batch ended"
_NOTHING_SHED = "no answer from shed rows"
_PLAIN, _SHED, _BOUND = "#c0392b", "#1f6f8b", "#555555"


def to_document(
    *,
    capacity_rows_per_s: float,
    overload: float,
    plain: Latency,
    shed: Latency,
    kept: Kept,
    answers: Answers,
    capacity_known: bool = False,
    loads: Sequence[float] = (),
) -> dict[str, Any]:
    """All results as one JSON-safe document; its keys are part of the command's promise."""
    return {
        "latency_bound_s": shed.bound_s,
        "capacity_rows_per_s": round(capacity_rows_per_s),
        "capacity_known": capacity_known,
        "overload": overload,
        "loads": list(loads),
        "held_needs": {"over_bound_share_at_most": HELD_SHARE, "judged_batches_at_least": HELD_BATCHES},
        "plain": {**asdict(plain), "held": plain.held.value},
        "shed": {
            **asdict(shed),
            "held": shed.held.value,
            "ideal_kept_fraction": min(1.0, 1.0 / overload),
            **asdict(kept),
            **asdict(answers),
        },
    }


def summary(document: dict[str, Any], console: Console) -> None:
    """Print the results side by side, and what they mean in words."""
    shed = document["shed"]
    table = Table("", title=f"Rows arriving at {document['overload']:g} times the capacity")
    for column in ("plain Spark", "with Jettison"):
        table.add_column(column, justify="right")

    def both(what: str, key: str, shown: Callable[[Any], str]) -> None:
        table.add_row(what, *(shown(document[run][key]) for run in ("plain", "shed")))

    both("row latency at its peak", "latency_peak_s", _seconds)
    both("for good under the bound after", "back_under_bound_s", partial(_seconds, none="not at all"))
    both("batches over it from the step on", "over_bound_batches", str)
    both("rows over it from the step on", "over_bound_rows", "{:,}".format)
    both("latency grows by", "latency_growth_s_per_s", "{:+.2f} s per s".format)
    both("rows without an answer at the end", "unanswered_rows", "{:,}".format)
    both("files landed late by at most", "feed_late_s", "{:.2f} s".format)
    table.add_section()
    both(f"batches judged, after the first {SETTLING_BATCHES}", "judged_batches", str)
    both("their latency, 95 % of rows within", "latency_p95_s", _seconds)
    both("their latency, worst", "latency_worst_s", _seconds)
    kept, variation = shed["kept_fraction"], shed["kept_fraction_variation"]
    at_best = "" if kept is None else f" (at best {shed['ideal_kept_fraction']:.1%})"
    table.add_row("rows kept", "", _percent(kept, 1, none=_NO_BATCH) + at_best)
    table.add_row("deviation of that share over mean", "", _NO_BATCH if variation is None else f"{variation:.2f}")
    table.add_section()
    table.add_row("mean relative error of an answer", "", _percent(shed["mean_relative_error"], 2))
    coverage = shed["bounds_coverage"]
    of_all = "" if coverage is None else f" of {shed['answers']:,}"
    table.add_row("answers whose 95 % bounds hold", "", _percent(coverage, 1) + of_all)
    table.add_row("groups missing", "", str(shed["groups_missing"]))
    console.print(table)
    if minutes := document.get("first_minute"):
        console.print(_first_minute(minutes["plain"], minutes["shed"]))
    console.print(_verdict(shed, document["latency_bound_s"]), highlight=False)


def _first_minute(*runs: dict[str, Any]) -> Table:
    table = Table(
        "",
        "plain Spark",
        "with Jettison",
        title="The first minute of a cold process, from the first batch on",
        caption="(*) of the rows in batches that ended",
    )
    table.add_row("first batch took", *(_seconds(run["first_batch_s"]) for run in runs))
    table.add_row("row latency, 95 % of rows within", *(_seconds(run["latency_p95_s"]) for run in runs))
    table.add_row("row latency, worst", *(_seconds(run["latency_worst_s"]) for run in runs))
    for name, what in (
        ("kept_below_capacity", "rows kept before the overload (*)"),
        ("kept_fraction", "rows kept in all (*)"),
    ):
        table.add_row(what, *(_percent(run[name], 1, none=_NO_BATCH) for run in runs))
    table.add_row("rows in no batch that ended", *(f"{run['unanswered_rows']:,}" for run in runs))
    return table


def _verdict(shed: dict[str, Any], bound_s: float) -> str:
    """The last sentence; it says what `held` rests on."""
    bound, back_s, share = f"latency bound of {bound_s:g} s", shed["back_under_bound_s"], shed["over_bound_share"]
    match Held(shed["held"]):
        case Held.YES:
            return (
                f"The {bound} was held with Jettison: for good from {back_s:.1f} s after the step on ({share:.0%} of the "
                f"overload; up to {HELD_SHARE:.0%} count as held), by {shed['judged_batches']} batches."
            )
        case Held.CAME_BACK:
            return (
                f"The {bound} was broken, with a peak of {shed['latency_peak_s']:.1f} s; with Jettison latency came back "
                f"under the bound after {back_s:.1f} s ({share:.0%} of the overload; up to {HELD_SHARE:.0%} count as held)."
            )
        case Held.NO if back_s is None:
            return f"The {bound} was NOT held with Jettison: latency did not come back under it."
        case Held.NO:
            return (
                f"The {bound} was NOT held with Jettison: after the first {SETTLING_BATCHES} batches, 95 % of rows were "
                f"within {shed['latency_p95_s']:.1f} s; it came back under the bound after {back_s:.1f} s."
            )
        case Held.UNKNOWN:
            return (
                f"Whether the {bound} was held with Jettison is not known: after the first {SETTLING_BATCHES} batches of "
                f"the overload there were {shed['judged_batches']}, and it takes {HELD_BATCHES}. Make the second phase "
                "longer with --seconds."
            )


def _seconds(length_s: float | None, none: str = _NO_BATCH) -> str:
    return none if length_s is None else f"{length_s:.1f} s"


def _percent(share: float | None, digits: int, none: str = _NOTHING_SHED) -> str:
    return none if share is None else f"{share:.{digits}%}"


def picture(runs: Sequence[Run], phases: Sequence[Phase], bound_s: float, path: Path) -> None:
    """Latency and kept fraction over time, both runs on one clock; the overload is shaded."""
    from matplotlib.figure import Figure  # takes a while to import, and only the picture needs it

    figure = Figure(figsize=(9, 6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for run, colour in zip(runs, (_PLAIN, _SHED), strict=True):
        _draw_run(run, colour, above, below)
    above.axhline(bound_s, color=_BOUND, linestyle="--", linewidth=1)
    above.annotate(f"bound {bound_s:g} s", (0, bound_s), xytext=(2, 3), textcoords="offset points", color=_BOUND)
    for axes in (above, below):
        axes.axvspan(*overload_span(phases), color="#f3e9d2", zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    above.set_ylabel("row latency at commit [s]")
    above.set_title("An overload between two calm phases: latency and share of rows kept")
    above.legend(frameon=False, loc="upper left")
    below.set_ylabel("kept fraction")
    below.set_ylim(0, 1.05)
    below.set_xlabel("time since start [s]; overload shaded")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _draw_run(run: Run, colour: str, above: Axes, below: Axes) -> None:
    time_s = [batch.committed_s - run.started_s for batch in run.batches]
    oldest = [float(batch.latencies(run.landing).max()) for batch in run.batches]
    name = "plain Spark" if run.name == "plain" else "with Jettison"
    if run.batches and run.batches[-1].last < run.landed:  # what still waits at the end is part of the story
        time_s.append(run.ended_s - run.started_s)
        oldest.append(run.ended_s - float(run.landing.arrival_of([run.batches[-1].last])[0]))
    above.plot(time_s, oldest, color=colour, marker="o", markersize=3, label=name)
    times = [batch.started_s - run.started_s for batch in run.batches]
    below.step(times, [batch.kept_fraction for batch in run.batches], where="post", color=colour)
