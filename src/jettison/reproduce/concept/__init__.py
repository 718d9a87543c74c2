"""Concept-driven load shedding (Katsipoulakis, Labrinidis, Chrysanthis, 2018): its experiments and its claims."""

from __future__ import annotations

from jettison.reproduce.concept.experiments import run_all
from jettison.reproduce.concept.figures import sections_of
from jettison.reproduce.concept.verdicts import claims_of
from jettison.reproduce.report import Report, RunSettings


def run(settings: RunSettings) -> Report:
    """Run every experiment: those that need no engine first, then those on Spark."""
    results = run_all(quick=settings.quick, seed=settings.seed, say=settings.say)
    config = {"seed": settings.seed, "quick": settings.quick, "batches_per_window": 60}
    command = settings.command("concept")
    title = "Concept-driven load shedding: what holds"
    # Only here: the other modules of this package can be read and tested without Spark.
    from jettison.reproduce.concept.on_spark import run_spark

    claims, sections = run_spark(settings)
    return Report("concept", title, command, [*sections_of(results), *sections], [*claims_of(results, config), *claims])
