"""Window-Aware Load Shedding for Aggregation Queries over Data Streams (VLDB 2006).

`jettison reproduce window` runs everything; `python -m jettison.reproduce.window NAME...` runs some of the experiments.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jettison import java
from jettison.reproduce.claims import Claim, noted
from jettison.reproduce.report import Report, RunSettings, Section

MOVED = {
    "pipeline-random-fails": "the bar",
    "half-dropped-cpu": "the size of batches, and three repetitions instead of one",
    "idle-": "the size of batches; where only some cells are measured, which ones",
    "three-times-load": "the form: a calm start, a capped source, 13 s before windows are judged",
}
"""What was settled after a look at figures, by the beginning of a claim's id."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Experiment = Callable[[SparkSession, Path, RunSettings], tuple[list[Claim], Section]]


def experiments() -> Mapping[str, Experiment]:
    """All experiments that need Spark, by name."""
    # Only here: the other modules of this package can be read and tested without Spark.
    from jettison.reproduce.window import guarantee, live, overhead, parameters, placement

    return {
        "subset": guarantee.subset,
        "figure10": placement.pipeline,
        "figure11": placement.fan_out,
        "figures12-13": parameters.windows,
        "table4": overhead.idle,
        "saved": overhead.saved,
        "live": live.overload,
    }


def run(settings: RunSettings, only: Sequence[str] = ()) -> Report:
    """Check every claim of the paper, and our own on top, on a local Spark."""
    java.require_java()
    from jettison.reproduce.window.decisions import decisions
    from jettison.spark.session import local_session

    claims, section = decisions(settings)
    sections = [section]
    with local_session("jettison reproduce window") as spark:
        for name, experiment in experiments().items():
            if only and name not in only:
                continue
            settings.say(name)
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="jettison-window-") as scratch:
                more, section = experiment(spark, Path(scratch), settings)
            claims += more
            sections.append(section)
            for claim in more:
                settings.say(f"  {claim.id}: {claim.ours:.4g}, {claim.bar}, holds: {claim.holds}")
            settings.say(f"  took {time.monotonic() - started:.0f} s")
    return Report(
        "window",
        "Window drops: fewer answers, every one of them exact",
        settings.command("window"),
        sections,
        noted(claims, MOVED),
    )
