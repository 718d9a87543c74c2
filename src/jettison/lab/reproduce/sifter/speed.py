"""Figures 6 and 7: time of construction and of lookups, and what a filter weighs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.sifter.trial import FAIRNESS, SAMPLES, THROTTLER, seeds_of
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.policies.regions.build import PARTITIONINGS, Partitioning, Sample, build
from jettison.policies.regions.configure import configure
from jettison.source import SifterFilter
from jettison.source.codec import encode
from jettison.source.region_filter import RegionFilter
from jettison.source.space import Floats

_REGIONS = (16, 100)
_MANY_QUERIES = 100_000
_LOOKUPS = 1_000_000


def speeds(settings: RunSettings) -> Judged:
    """Construction in ms, lookups with decisions in millions a second, and bytes of a filter.

    Times are processor times, the fastest of several.
    """
    seeds, repetitions = seeds_of(settings)[:5], 7 if settings.quick else 15
    ms = partial(_fastest_ms, repetitions=repetitions)
    one, many = (_Drawn(Workload(queries=queries), seeds[0]) for queries in (1000, _MANY_QUERIES))
    columns = [np.ascontiguousarray(column) for column in one.generated.rows(_LOOKUPS).T]
    slowest = max(ms(partial(SifterFilter(one.built(name, 100)).decide, columns)) for name in PARTITIONINGS)
    figures = {
        "fig6-16": ms(lambda: one.built("qdpart", 16)),
        "fig6-100": ms(lambda: one.built("qdpart", 100)),
        "fig6-many": ms(lambda: many.built("qdpart", 16)),
        "fig6-solver": min(_times_faster(seeds[0], regions, repetitions) for regions in _REGIONS),
        "fig7-numpy": _LOOKUPS / 1e3 / slowest,
        **{f"size-{regions}": float(size) for regions, size in _sizes(seeds).items()},
    }
    claims = judge("sifter", figures, {"repetitions": repetitions, "of": "the fastest, in processor time"})
    rows = [[claim.claim, claim.ours] for claim in claims]
    return [Section("Figures 6 and 7: speed and size", table(["measured", "ours"], rows))], claims


class _Drawn:
    """A workload with its sampled rows; every filter is built from both."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self.generated = Generated(workload, seed)
        self._rows = self.generated.rows(SAMPLES)

    def built(self, partitioning: Partitioning, regions: int) -> RegionFilter:
        """From queries and sampled rows to a finished filter."""
        queries = self.generated.queries
        built = build(queries, Sample.of(queries, self._rows), partitioning=partitioning, regions=regions)
        return built.filter(THROTTLER, FAIRNESS)


def _sizes(seeds: Sequence[int]) -> Mapping[int, int]:
    """Bytes of a filter by number of regions, the largest over seeds and partitionings."""
    drawn = [_Drawn(Workload(), seed) for seed in seeds]
    return {
        regions: max(len(encode(one.built(name, regions))) for one in drawn for name in PARTITIONINGS)
        for regions in _REGIONS
    }


def _times_faster(seed: int, regions: int, repetitions: int) -> float:
    """The closed form against the linear program solved by HiGHS."""
    random = np.random.default_rng([seed, regions])
    qos, rows, wanted = random.random(regions) / regions, random.dirichlet(np.ones(regions)), np.ones(regions, bool)
    closed_form = partial(configure, qos, rows, wanted, throttler=THROTTLER, fairness=FAIRNESS)
    return _fastest_ms(partial(_solve, qos, rows), repetitions) / _fastest_ms(closed_form, 20 * repetitions)


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


def _fastest_ms(run: Callable[[], object], repetitions: int) -> float:
    """The fastest of several runs, in time of the processor: what one core does when nothing else interferes."""
    times = []
    for _ in range(repetitions):
        started = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - started))
    return min(times)
