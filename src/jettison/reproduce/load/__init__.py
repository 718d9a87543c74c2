"""Load-aware shedding (Rivetti, Anceaume, Busnel, Querzoni, Sericola, 2016): its experiments and its claims."""

from __future__ import annotations

import time

from jettison import java
from jettison.errors import Unsupported, explain
from jettison.reproduce.claims import Claim
from jettison.reproduce.load.application import run_application
from jettison.reproduce.load.corrections import run_corrections
from jettison.reproduce.load.phases import run_phases
from jettison.reproduce.load.sensitivity import EXPERIMENTS
from jettison.reproduce.load.speed import run_speed
from jettison.reproduce.load.sweep import Runs
from jettison.reproduce.load.utility import run_utility
from jettison.reproduce.report import Report, RunSettings, Section
from jettison.sim.load.compiled import HAVE_COMPILER


def run(settings: RunSettings) -> Report:
    """Figures 4 to 9 and 11 in the simulator, what was corrected and added, and figures 10 and 11 on Spark."""
    if not HAVE_COMPILER:
        raise Unsupported(
            explain(
                "numba, which compiles the simulator",
                "none",
                where="`jettison reproduce load`",
                hint="install jettison[reproduce]",
            )
        )
    if problem := java.java_problem():
        raise Unsupported(problem)  # now, and not after an hour of simulation
    runs = Runs(associations=25, orders=4, seed=settings.seed) if settings.quick else Runs(100, 50, settings.seed)
    few = Runs(runs.associations, min(runs.orders, 5), settings.seed)
    sections: list[Section] = []
    claims: list[Claim] = []
    started = time.monotonic()

    def add(new: list[Section], judged: list[Claim], name: str) -> None:
        sections.extend(new)
        claims.extend(judged)
        held = sum(claim.holds for claim in judged)
        settings.say(f"{name}: {held} of {len(judged)} claims hold, {time.monotonic() - started:.0f} s so far")

    # Straw-Man at 90 % is near its bar: figure 4 takes more streams, lest the verdict hang on the seed.
    more = Runs(100, 4, settings.seed) if settings.quick else runs
    for experiment in EXPERIMENTS:
        section, judged, _ = experiment.run(more if experiment is EXPERIMENTS[0] else runs)
        add([section], judged, experiment.title)
    section, judged = run_phases(streams=9 if settings.quick else 20, seed=settings.seed)
    add([section], judged, section.title)
    app_sections, judged = run_application(settings.seed)
    add(app_sections, judged, "Figure 11, simulated")
    for part in (run_corrections, run_utility):
        section, judged = part(few)
        add([section], judged, section.title)
    section, judged = run_speed(settings.seed)
    add([section], judged, section.title)
    from jettison.reproduce.load.spark_part import run_spark  # needs pyspark, which the simulator does not

    run_spark(add, quick=settings.quick, seed=settings.seed)
    command = f"jettison reproduce load{' --quick' if settings.quick else ''} --seed {settings.seed}"
    return Report("load", "Load-aware shedding", command, sections, claims)
