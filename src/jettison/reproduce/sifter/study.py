"""`jettison reproduce sifter`: all figures, tables and claims."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from jettison.reproduce.report import Report, RunSettings
from jettison.reproduce.sifter import budget, partitionings, sensitivity, speed
from jettison.reproduce.sifter.trial import Scale, Setting, measure

# Fewer rows leave more queries empty, which changes gains (not loss cuts): both modes count the true QoS on as many.
_ROWS = 100_000
_TRUNCATED_SKEWS = (1.0, 4.0, 10.0)
# Few verdicts hang on the seed then: the standard error of a loss cut is less than a point at 60 seeds.
_SEEDS, _QUICK_SEEDS = 60, 24


def run(settings: RunSettings) -> Report:
    """Run every experiment; quick means fewer seeds, and every claim is still checked."""
    first = settings.seed * 1000
    seeds = tuple(range(first, first + (_QUICK_SEEDS if settings.quick else _SEEDS)))
    scale = Scale(seeds, _ROWS)
    config = {"seeds": len(seeds), "first_seed": first, "rows": scale.rows, "normals": "free"}

    settings.say("figures 6 and 7: speed ...")
    repetitions = 7 if settings.quick else 15
    measured = (
        speed.construction(first, repetitions),
        speed.lookups(first, repetitions),
        speed.construction_of_many(first, repetitions),
        speed.against_solver(first, repetitions),
        speed.sizes(seeds[:5]),
    )
    settings.say("pass rate ...")
    rates = budget.measure(seeds[:20])
    settings.say("figures 4, 5 and 8 to 10: true QoS ...")
    free, truncated = partitionings.grid(), partitionings.grid(truncated=True, skews=_TRUNCATED_SKEWS)
    processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    known = measure([*_all(free), *sensitivity.settings()], scale, processes=processes)
    known_truncated = measure(_all(truncated), Scale(seeds[:10], _ROWS), processes=processes)
    sweeps = partitionings.looked_up(free, known)
    figures = sensitivity.Sensitivity.of(known)
    return Report(
        paper="sifter",
        title="Compact shedding filters (ICDE 2007), reproduced",
        command=settings.command("sifter"),
        sections=[
            *partitionings.sections(sweeps, "Figure 4: partitionings under skew, normals free"),
            *partitionings.sections(
                partitionings.looked_up(truncated, known_truncated),
                "Figure 4 again: normals truncated at their hot spot",
            ),
            *figures.sections(),
            speed.section(*measured),
            budget.section(rates),
        ],
        claims=[
            *partitionings.claims(sweeps, config, known),
            *sensitivity.claims(figures, config),
            *speed.claims(*measured, {"repetitions": repetitions, "of": "the fastest"}),
            *budget.claims(rates, {"seeds": 20, "first_seed": first, "samples": 1000, "rows": budget.ROWS}),
        ],
    )


def _all(grid: Mapping[str, Mapping[str, Mapping[float, Setting]]]) -> Iterable[Setting]:
    return [one for kinds in grid.values() for settings in kinds.values() for one in settings.values()]
