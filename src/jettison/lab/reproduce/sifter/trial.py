"""One paired comparison: the same queries, sample and rows for random dropping and for every sifter.

The true QoS is counted on rows that no sifter has seen, never taken from the model that configured it. And it is
counted at the throttler: a filter that was built from a sample lets some percent more rows pass than it should, which
would look like a gain, so every sifter first gets its thresholds corrected by counts, as in operation. What the first
filter would have given is counted too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.lab.reproduce import workers
from jettison.lab.reproduce.report import RunSettings
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.policies.regions.build import PARTITIONINGS, Built, Sample
from jettison.policies.regions.choose import Candidate, best, candidates
from jettison.policies.regions.consolidate import consolidate
from jettison.policies.regions.queries import completeness
from jettison.source.region_filter import RegionFilter

RANDOM, CHOSEN, FIRST = "random", "chosen", "chosen, first filter"
METHODS = (RANDOM, *PARTITIONINGS, CHOSEN, FIRST)

# Table I of the paper.
THROTTLER, REGIONS, FAIRNESS, SAMPLES = 0.5, 16, 0.5, 1000


# Few verdicts hang on the seed then: the standard error of a loss cut is less than a point at 60 seeds.
_SEEDS, _QUICK_SEEDS = 60, 24


def seeds_of(settings: RunSettings) -> tuple[int, ...]:
    """Quick means fewer seeds, and every claim is still checked."""
    first = settings.seed * 1000
    return tuple(range(first, first + (_QUICK_SEEDS if settings.quick else _SEEDS)))


def with_counts(built: Built, counts: ArrayLike) -> Built:
    """The same regions with the rows that sources have counted in them and outside, in place of the sample's."""
    rows = np.asarray(counts, dtype=np.float64)
    frequency = rows[: built.partition.regions] / max(rows.sum(), 1.0)
    return replace(built, statistics=consolidate(built.queries, built.partition, frequency))


class Trial:
    """A drawn workload with its sample, the rows that correct thresholds, and those on which the true QoS is counted.

    Sifters are built once for each number of regions, and rows looked up once in each: throttlers and fairness only
    change thresholds.
    """

    def __init__(self, workload: Workload, seed: int, rows: int) -> None:
        generated = Generated(workload, seed)
        self.queries = generated.queries
        self._sample = Sample.of(self.queries, generated.rows(SAMPLES))
        self._counted = self.queries.space.codes(generated.rows(rows // 2))
        drawn = generated.rows(rows)
        self._query, row = self.queries.matches(drawn)
        self._matched = self.queries.space.codes(drawn[row])
        self._wanted = np.bincount(self._query, minlength=len(self.queries)) > 0
        self._built: dict[int, list[_LookedUp]] = {}

    @property
    def empty_share(self) -> float:
        """Share of the queries that no row matches; they count as complete."""
        return float(1.0 - self._wanted.mean())

    def qos_of_methods(self, throttler: float, regions: int, fairness: float) -> list[float]:
        """True QoS of every method, in the order of `METHODS`; in expectation over the decisions."""
        built = self._built_for(regions)
        qos = [self._true_qos(one.corrected.filter(throttler, fairness), one) for one in built]
        chosen = best([one.candidate for one in built], throttler, fairness)
        place = [one.candidate for one in built].index(chosen)
        by_chance = self.queries.quality(np.where(self._wanted, throttler, 1.0))
        return [by_chance, *qos, qos[place], self._true_qos(chosen.built.filter(throttler, fairness), built[place])]

    def _true_qos(self, made: RegionFilter, one: _LookedUp) -> float:
        kept = 1.0 - made.drop[one.region_of_match]
        return self.queries.quality(completeness(self._query, kept, len(self.queries)))

    def _built_for(self, regions: int) -> list[_LookedUp]:
        if regions not in self._built:
            made = candidates(self.queries, self._sample, regions=regions)
            self._built[regions] = [self._looked_up(one) for one in made]
        return self._built[regions]

    def _looked_up(self, candidate: Candidate) -> _LookedUp:
        built = candidate.built
        of_counted = built.partition.region_of(self._counted)
        counts = np.bincount(of_counted, minlength=built.partition.regions + 1)
        return _LookedUp(candidate, with_counts(built, counts), built.partition.region_of(self._matched))


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """One partitioning: as built from the sample, with its regions' true counts, and the region of each matched row."""

    candidate: Candidate
    corrected: Built
    region_of_match: NDArray[np.int32]


@dataclass(frozen=True)
class Outcome:
    """True QoS of every method at one setting, shape (seeds, methods), with the share of empty queries."""

    qos: NDArray[np.float64]
    empty_share: float

    def mean(self, method: str) -> float:
        return float(self.qos[:, METHODS.index(method)].mean())

    def gain(self, method: str = CHOSEN) -> float:
        """How much higher the QoS is than that of random dropping, relative to it."""
        return self.mean(method) / self.mean(RANDOM) - 1.0

    def loss_cut(self, method: str = CHOSEN) -> float:
        """Share of random dropping's loss of QoS that is avoided."""
        lost = 1.0 - self.mean(RANDOM)
        return (self.mean(method) - self.mean(RANDOM)) / lost if lost > 0.0 else 0.0

    def gains(self) -> NDArray[np.float64]:
        """Gain of the chosen partitioning, seed by seed."""
        gains: NDArray[np.float64] = self.qos[:, METHODS.index(CHOSEN)] / self.qos[:, METHODS.index(RANDOM)] - 1.0
        return gains

    @property
    def best_single(self) -> str:
        """The partitioning of highest mean QoS."""
        return max(PARTITIONINGS, key=self.mean)

    def behind_best(self, method: str = CHOSEN) -> float:
        """How far a method is behind the best single partitioning; negative where it is ahead."""
        return self.mean(self.best_single) - self.mean(method)


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of a figure: a workload, and how its sifters are configured. Table I if not given."""

    workload: Workload
    throttler: float = THROTTLER
    regions: int = REGIONS
    fairness: float = FAIRNESS


def measure(
    settings: Iterable[Setting], seeds: tuple[int, ...], rows: int, *, processes: int = workers.CORES
) -> dict[Setting, Outcome]:
    """Outcome of every setting with every seed, on so many rows; the same in one process or in several."""
    by_workload: dict[Workload, list[Setting]] = {}
    for setting in dict.fromkeys(settings):
        by_workload.setdefault(setting.workload, []).append(setting)
    jobs = [(workload, tuple(wanted), seeds, rows) for workload, wanted in by_workload.items()]
    jobs.sort(key=lambda job: -len(job[1]))  # long jobs first, so that no process ends up alone with one
    with workers.processes(processes) as pool:
        found = list(pool.map(_measure_workload, *zip(*jobs, strict=True)))
    return {setting: outcome for outcomes in found for setting, outcome in outcomes.items()}


def _measure_workload(
    workload: Workload, settings: tuple[Setting, ...], seeds: tuple[int, ...], rows: int
) -> dict[Setting, Outcome]:
    qos: dict[Setting, list[list[float]]] = {setting: [] for setting in settings}
    empty = []
    for seed in seeds:
        trial = Trial(workload, seed, rows)
        empty.append(trial.empty_share)
        for setting in settings:
            qos[setting].append(trial.qos_of_methods(setting.throttler, setting.regions, setting.fairness))
    return {setting: Outcome(np.array(found), float(np.mean(empty))) for setting, found in qos.items()}
