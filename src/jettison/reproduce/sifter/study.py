"""`jettison reproduce sifter`: all figures, tables and claims."""

from __future__ import annotations

from jettison.reproduce.report import Report, RunSettings
from jettison.reproduce.sifter import budget, partitionings, sensitivity, speed
from jettison.reproduce.sifter.trial import Scale


def run(settings: RunSettings) -> Report:
    """Run every experiment; quick means fewer rows for the true QoS, not fewer seeds."""
    first = settings.seed * 1000
    seeds = tuple(range(first, first + (20 if settings.quick else 40)))
    scale = Scale(seeds, rows=30_000 if settings.quick else 100_000)
    config = {"seeds": len(seeds), "first_seed": first, "rows": scale.rows, "normals": "free"}

    settings.say("figures 6 and 7: speed ...")
    repetitions = 5 if settings.quick else 15
    measured = (
        speed.construction(first, repetitions),
        speed.lookups(first, repetitions),
        speed.construction_of_many(first, repetitions),
        speed.against_solver(first, repetitions),
        speed.sizes(seeds[:5]),
    )
    settings.say("figure 4: partitionings and skew ...")
    sweeps = partitionings.sweep(scale)
    settings.say("figure 4 with truncated normals ...")
    truncated = partitionings.sweep(Scale(seeds[:20], scale.rows), truncated=True)
    settings.say("figures 5 and 8 to 10: sensitivity ...")
    regions, throttler = sensitivity.by_regions(scale), sensitivity.by_throttler(scale)
    fairness, side, slopes = sensitivity.by_fairness(scale), sensitivity.by_side(scale), sensitivity.by_slopes(scale)
    settings.say("pass rate ...")
    rates = budget.measure(seeds[:20], rows=100_000)
    return Report(
        paper="sifter",
        title="Compact shedding filters (ICDE 2007), reproduced",
        command=f"jettison reproduce sifter{' --quick' if settings.quick else ''} --seed {settings.seed}",
        sections=[
            *partitionings.sections(sweeps, "Figure 4: partitionings under skew, normals free"),
            *partitionings.sections(truncated, "Figure 4 again: normals truncated at their hot spot"),
            sensitivity.gain_section("Figure 5: number of regions", "regions", regions),
            speed.section(*measured),
            sensitivity.throttler_section(throttler),
            sensitivity.gain_section("Figure 9: fairness threshold", "fairness", fairness),
            sensitivity.gain_section("Figure 10: query sides", "longest side", side),
            sensitivity.slopes_section(slopes),
            budget.section(rates),
        ],
        claims=[
            *partitionings.claims(sweeps, config),
            *sensitivity.claims(regions, throttler, fairness, side, slopes, config),
            *speed.claims(*measured, {"repetitions": repetitions, "of": "the fastest"}),
            *budget.claims(rates, {"seeds": 20, "first_seed": first, "rows": 100_000, "samples": 1000}),
        ],
    )
