"""Concept-driven load shedding (Katsipoulakis, Labrinidis, Chrysanthis, 2018): its experiments and its claims."""

from __future__ import annotations

from dataclasses import replace

from jettison.reproduce.concept.experiments import run_all
from jettison.reproduce.concept.figures import sections_of
from jettison.reproduce.concept.verdicts import claims_of
from jettison.reproduce.report import Report, RunSettings


def run(settings: RunSettings) -> Report:
    """Run every experiment: those that need no engine first, then those on Spark."""
    pure = run_pure(settings)
    pure.save(settings.out)  # what is known is on disk before Spark starts
    # Only here: the other modules of this package can be read and tested without Spark.
    from jettison.reproduce.concept.on_spark import run_spark

    claims, sections = run_spark(settings)
    return replace(pure, sections=[*pure.sections, *sections], claims=[*pure.claims, *claims])


def run_pure(settings: RunSettings) -> Report:
    """Run the experiments that need no engine."""
    results = run_all(quick=settings.quick, seed=settings.seed, say=settings.say)
    config = {"seed": settings.seed, "quick": settings.quick, "batches_per_window": 60}
    title = "Concept-driven load shedding: what holds"
    return Report("concept", title, settings.command("concept"), sections_of(results), claims_of(results, config))
