"""Figures 6 and 7: time of construction and of lookups, and what a filter weighs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import Section, table
from jettison.reproduce.sifter.trial import FAIRNESS, SAMPLES, THROTTLER
from jettison.reproduce.sifter.workload import Generated, Workload
from jettison.sifter.build import PARTITIONINGS, Partitioning, Sample, build
from jettison.sifter.choose import best, candidates
from jettison.sifter.codec import encode
from jettison.sifter.configure import configure
from jettison.sifter.space import Floats
from jettison.source import SifterFilter

REGIONS = (16, 36, 64, 100)
MANY_QUERIES = 100_000
LOOKUPS = 1_000_000


def construction(seed: int, repetitions: int) -> dict[tuple[str, int], float]:
    """Milliseconds from queries and sampled rows to a finished filter, by partitioning and number of regions."""
    generated = Generated(Workload(), seed)
    rows = generated.rows(SAMPLES)
    found: dict[tuple[str, int], float] = {}
    for regions in REGIONS:
        for name in PARTITIONINGS:
            found[name, regions] = _best_ms(partial(_construct, generated, rows, name, regions), repetitions)
        found["chosen", regions] = _best_ms(partial(_choose, generated, rows, regions), repetitions)
    return found


def construction_of_many(seed: int, repetitions: int) -> float:
    """Milliseconds with 100,000 queries, 16 regions and QDPart."""
    generated = Generated(replace(Workload(), queries=MANY_QUERIES), seed)
    rows = generated.rows(SAMPLES)
    return _best_ms(partial(_construct, generated, rows, "qdpart", 16), repetitions)


def lookups(seed: int, repetitions: int) -> dict[tuple[str, int], float]:
    """Million rows per second, decided on one core in numpy."""
    generated = Generated(Workload(), seed)
    sample = Sample.of(generated.queries, generated.rows(SAMPLES))
    columns = [np.ascontiguousarray(column) for column in generated.rows(LOOKUPS).T]
    found: dict[tuple[str, int], float] = {}
    for regions in REGIONS:
        for name in PARTITIONINGS:
            built = build(generated.queries, sample, partitioning=name, regions=regions)
            sifter = SifterFilter(built.filter(THROTTLER, FAIRNESS))
            found[name, regions] = LOOKUPS / 1e3 / _best_ms(partial(sifter.decide, columns), repetitions)
    return found


def sizes(seeds: tuple[int, ...]) -> dict[int, int]:
    """Bytes of a filter by number of regions, the largest over seeds and partitionings."""
    found = dict.fromkeys(REGIONS, 0)
    for seed in seeds:
        generated = Generated(Workload(), seed)
        sample = Sample.of(generated.queries, generated.rows(SAMPLES))
        for regions in REGIONS:
            for name in PARTITIONINGS:
                built = build(generated.queries, sample, partitioning=name, regions=regions)
                found[regions] = max(found[regions], len(encode(built.filter(THROTTLER, FAIRNESS))))
    return found


def against_solver(seed: int, repetitions: int) -> dict[int, float]:
    """How many times faster the closed form is than the linear program solved by HiGHS."""
    random = np.random.default_rng(seed)
    found = {}
    for regions in (16, 100):
        qos, rows, wanted = random.random(regions) / regions, random.dirichlet(np.ones(regions)), np.ones(regions, bool)
        closed_form = partial(configure, qos, rows, wanted, throttler=THROTTLER, fairness=FAIRNESS)
        found[regions] = _best_ms(partial(_solve, qos, rows), repetitions) / _best_ms(closed_form, 20 * repetitions)
    return found


def section(
    built: Mapping[tuple[str, int], float],
    looked: Mapping[tuple[str, int], float],
    many_ms: float,
    solver: Mapping[int, float],
    bytes_of: Mapping[int, int],
) -> Section:
    """All of it as tables."""
    header = ["", *(f"l = {regions}" for regions in REGIONS)]
    built_rows = [[name, *(built[name, regions] for regions in REGIONS)] for name in (*PARTITIONINGS, "chosen")]
    looked_rows = [[name, *(looked[name, regions] for regions in REGIONS)] for name in PARTITIONINGS]
    text = [
        "Construction in ms, 1,000 queries and 1,000 samples:",
        table(header, built_rows),
        f"With {MANY_QUERIES:,} queries, QDPart, 16 regions: {many_ms:.0f} ms.",
        "Lookups with decisions, million rows/s on one core in numpy:",
        table(header, looked_rows),
        "Bytes of a filter of two attributes, largest:",
        table(header, [["", *(bytes_of[regions] for regions in REGIONS)]]),
        f"Closed form against HiGHS: {solver[16]:.0f} times faster at l = 16, {solver[100]:.0f} at l = 100.",
    ]
    return Section("Figures 6 and 7: speed and size", "\n\n".join(text))


def claims(
    built: Mapping[tuple[str, int], float],
    looked: Mapping[tuple[str, int], float],
    many_ms: float,
    solver: Mapping[int, float],
    bytes_of: Mapping[int, int],
    config: Mapping[str, object],
) -> list[Claim]:
    """The bars on speed and size."""
    slowest = min(rate for (_, regions), rate in looked.items() if regions == 100)
    return [
        Claim(
            "fig6-16", "construction at l = 16, QDPart, in ms", "150 ms", built["qdpart", 16], at_most=20, config=config
        ),
        Claim(
            "fig6-100",
            "construction at l = 100, QDPart, in ms",
            "up to 2,700 ms",
            built["qdpart", 100],
            at_most=120,
            config=config,
        ),
        Claim("fig6-many", "construction with 100,000 queries, in ms", "", many_ms, at_most=500, config=config),
        Claim("fig6-solver", "closed form against HiGHS, times", "", min(solver.values()), at_least=50, config=config),
        Claim(
            "fig7-numpy",
            "million lookups with decisions a second at l = 100, numpy, one core, slowest partitioning",
            "5",
            slowest,
            at_least=15,
            config=config,
        ),
        Claim("size-16", "bytes of 16 regions and 2 attributes", "", float(bytes_of[16]), at_most=120, config=config),
        Claim(
            "size-100", "bytes of 100 regions and 2 attributes", "", float(bytes_of[100]), at_most=700, config=config
        ),
    ]


def _construct(generated: Generated, rows: Floats, partitioning: Partitioning, regions: int) -> None:
    sample = Sample.of(generated.queries, rows)
    build(generated.queries, sample, partitioning=partitioning, regions=regions).filter(THROTTLER, FAIRNESS)


def _choose(generated: Generated, rows: Floats, regions: int) -> None:
    sample = Sample.of(generated.queries, rows)
    made = candidates(generated.queries, sample, regions=regions)
    best(made, THROTTLER, FAIRNESS).built.filter(THROTTLER, FAIRNESS)


def _solve(qos: Floats, rows: Floats) -> None:
    """The linear program of eq. 10 with its lowest threshold as one more variable: O(l) fairness constraints."""
    from scipy.optimize import linprog

    regions = len(qos)
    fair = np.zeros((2 * regions, regions + 1))
    fair[:regions, :regions], fair[:regions, regions] = -np.eye(regions), 1.0
    fair[regions:, :regions], fair[regions:, regions] = np.eye(regions), -1.0
    linprog(
        np.append(qos, 0.0),
        A_ub=fair,
        b_ub=np.repeat([0.0, FAIRNESS], regions),
        A_eq=[np.append(rows, 0.0)],
        b_eq=[1.0 - THROTTLER],
        bounds=(0.0, 1.0),
        method="highs",
    )


def _best_ms(run: Callable[[], object], repetitions: int) -> float:
    """The fastest of several runs, in time of the processor: what one core does when nothing else interferes."""
    times = []
    for _ in range(repetitions):
        started = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - started))
    return min(times)
