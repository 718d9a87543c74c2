"""Load Shedding in a Data Stream Manager (VLDB 2003): figures 9 to 12, the planners behind them, and a run on Spark.

`jettison reproduce aurora` runs everything; `python -m jettison.reproduce.aurora NAME...` runs some of the experiments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from jettison import java
from jettison.reproduce.aurora import admission_order, planners, sharing, skew, utility_loss
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import Report, RunSettings, Section

Judged = tuple[list[Section], list[Claim]]


def _live(settings: RunSettings) -> Judged:
    from jettison.reproduce.aurora import live  # the only part that needs Java and pyspark

    return live.run(settings)


PARTS: Mapping[str, Callable[[RunSettings], Judged]] = {
    "figures9-10": utility_loss.run,
    "figure11": skew.run,
    "figure12": sharing.run,
    "planners": planners.run,
    "admission": admission_order.run,
    "live": _live,
}


def run(settings: RunSettings, only: Sequence[str] = ()) -> Report:
    """All experiments or those named. The report is saved after each, so that a run cut short leaves what it found.

    The live run is left out where there is no Java, unless it is asked for by name.
    """
    names = [name for name in PARTS if not only or name in only]
    if "live" in only:
        java.require_java()  # now, and not after minutes of simulation
    elif "live" in names and java.java_problem() is not None:
        settings.say("live: left out, because there is no Java")
        names.remove("live")
    sections: list[Section] = []
    claims: list[Claim] = []
    title, command = "Load shedding in a data stream manager", settings.command("aurora")
    for name in names:
        started = time.monotonic()
        more_sections, more_claims = PARTS[name](settings)
        sections += more_sections
        claims += more_claims
        Report("aurora", title, command, sections, claims).save(settings.out)
        held = sum(claim.holds for claim in more_claims)
        settings.say(f"{name}: {held} of {len(more_claims)} claims hold, {time.monotonic() - started:.0f} s")
    return Report("aurora", title, command, sections, claims)
