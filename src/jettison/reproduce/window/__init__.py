"""Window-Aware Load Shedding for Aggregation Queries over Data Streams (VLDB 2006)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from jettison.reproduce.report import Report, RunSettings


def run(settings: RunSettings) -> Report:
    """Check every claim of the paper, and our own on top, on a local Spark."""
    # Only here: the other modules of this package can be read and tested without Spark.
    from jettison.reproduce.window import guarantee, live, overhead, parameters, placement
    from jettison.reproduce.window.decisions import decisions
    from jettison.spark.session import local_session

    settings.say("decisions")
    claims, section = decisions(settings)
    sections = [section]
    experiments = {
        "subset guarantee": guarantee.subset,
        "figure 10": placement.pipeline,
        "figure 11": placement.fan_out,
        "figure 12": parameters.sizes,
        "figure 13": parameters.slides,
        "table 4": overhead.idle,
        "CPU saved": overhead.saved,
        "three times load": live.overload,
    }
    with local_session("jettison reproduce window") as spark:
        for name, experiment in experiments.items():
            settings.say(name)
            with tempfile.TemporaryDirectory(prefix="jettison-window-") as scratch:
                more, section = experiment(spark, Path(scratch), settings)
            claims += more
            sections.append(section)
    command = f"jettison reproduce window{' --quick' if settings.quick else ''} --seed {settings.seed}"
    return Report("window", "Window drops: fewer answers, every one of them exact", command, sections, claims)
