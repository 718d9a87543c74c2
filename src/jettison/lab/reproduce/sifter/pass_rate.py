"""The pass rate: biased by the sample at first, and within 1 % of the throttler after feedback."""

from __future__ import annotations

from itertools import product

import numpy as np

from jettison.lab.reproduce.claims import Figure, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.sifter.trial import FAIRNESS, SAMPLES, seeds_of, with_counts
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.policies.regions.build import Built, Sample
from jettison.policies.regions.choose import best, candidates
from jettison.source import SifterFilter
from jettison.source.space import Floats

_THROTTLERS, _REGIONS = (0.1, 0.5, 0.9), (16, 100)
_SEEDS = 20
_SAMPLE_EVERY, _TOLERANCE = 100, 0.005  # a smaller miss of the pass rate, relative to it, is not corrected
# So many that the rate of one stream tells bias from chance: its standard deviation is 0.2 % of z at z = 0.1.
_ROWS = 2_000_000


def pass_rate(settings: RunSettings) -> Judged:
    """Whether as many rows pass as the throttler says, with the first filter and after one correction by counts."""
    seeds = seeds_of(settings)[:_SEEDS]
    runs = np.array([_runs(seed) for seed in seeds])  # by seed, setting and (before, after, miss of a threshold)
    cases = list(product(_THROTTLERS, _REGIONS))
    misses = np.abs(runs[:, :, :2] / np.array([z for z, _ in cases])[:, None] - 1.0).max(axis=0)
    rows = [
        [z, regions, *runs[:, i, 0:1].mean(axis=0), misses[i, 0], *runs[:, i, 1:2].mean(axis=0), misses[i, 1]]
        for i, (z, regions) in enumerate(cases)
    ]
    header = ["z", "l", "pass rate", "worst miss, of z", "after feedback", "worst miss, of z"]
    figures: dict[str, Figure] = {
        "budget-feedback": (float(misses[:, 1].max()), {"before": float(misses[:, 0].max())}),
        "source-thresholds": float(runs[:, :, 2].max()),
    }
    config = {"seeds": len(seeds), "first_seed": seeds[0], "samples": SAMPLES, "rows": _ROWS}
    return [Section("Pass rate", table(header, rows))], judge("sifter", figures, config)


def _runs(seed: int) -> list[tuple[float, float, float]]:
    generated = Generated(Workload(), seed)
    sample = generated.rows(SAMPLES)
    streams = [list(generated.rows(_ROWS).T) for _ in range(2)]
    found = []
    known = Sample.of(generated.queries, sample)
    for throttler, regions in product(_THROTTLERS, _REGIONS):
        built = best(candidates(generated.queries, known, regions=regions), throttler, FAIRNESS).built
        found.append(_run(built, throttler, streams))
    return found


def _run(built: Built, throttler: float, streams: list[list[Floats]]) -> tuple[float, float, float]:
    """Pass rates before and after one correction by counts, on rows of their own each, and the worst threshold."""
    source = SifterFilter(built.filter(throttler, FAIRNESS, sample_every=_SAMPLE_EVERY))
    before = float(source.decide(streams[0]).keep.mean())
    kept = source.produced @ (1.0 - np.append(source.filter.drop, 0.0)) / source.produced.sum()  # outside all are kept
    passed = 1.0 / _SAMPLE_EVERY + (1.0 - 1.0 / _SAMPLE_EVERY) * kept
    if abs(passed - throttler) > _TOLERANCE * throttler:
        corrected = with_counts(built, source.produced)
        source.install(corrected.filter(throttler, FAIRNESS, sample_every=_SAMPLE_EVERY))
    after = float(source.decide(streams[1]).keep.mean())
    produced, dropped = source.produced[:-1], source.dropped[:-1]
    busy = produced >= 1000
    miss = np.abs(dropped[busy] / produced[busy] - source.filter.drop[busy]).max(initial=0.0)
    return before, after, float(miss)
