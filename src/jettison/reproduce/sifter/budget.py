"""The pass rate: biased by the sample at first, and within 1 % of the throttler after feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import Section, table
from jettison.reproduce.sifter.trial import SAMPLES
from jettison.reproduce.sifter.workload import Generated, Workload
from jettison.sifter.adapt import AdaptiveSifter
from jettison.sifter.space import Floats
from jettison.source import SifterFilter

THROTTLERS = (0.1, 0.5, 0.9)
REGIONS = (16, 100)
_SAMPLE_EVERY = 100
# So many that the rate of one stream tells bias from chance: its standard deviation is 0.2 % of z at z = 0.1.
ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class PassRate:
    """Pass rates over the seeds, with the first filter and after feedback, and the worst miss of a threshold."""

    first: tuple[float, ...]
    corrected: tuple[float, ...]
    worst_threshold_miss: float


def measure(seeds: tuple[int, ...]) -> dict[tuple[float, int], PassRate]:
    """By throttler and number of regions."""
    runs: dict[tuple[float, int], list[tuple[float, float, float]]] = {}
    for seed in seeds:
        generated = Generated(Workload(), seed)
        sample = generated.rows(SAMPLES)
        streams = [list(generated.rows(ROWS).T) for _ in range(2)]
        for throttler in THROTTLERS:
            for regions in REGIONS:
                adaptive = AdaptiveSifter(generated.queries, regions=regions, sample_every=_SAMPLE_EVERY)
                adaptive.collect(sample)
                runs.setdefault((throttler, regions), []).append(_run(adaptive, throttler, streams))
    return {
        setting: PassRate(first, corrected, max(misses))
        for setting, of_setting in runs.items()
        for first, corrected, misses in [zip(*of_setting, strict=True)]
    }


def _run(adaptive: AdaptiveSifter, throttler: float, streams: list[list[Floats]]) -> tuple[float, float, float]:
    """Pass rates before and after one correction by counts, on rows of their own each, and the worst threshold."""
    first = adaptive.update(throttler)
    assert first is not None
    source = SifterFilter(first.filter)
    before = float(source.decide(streams[0]).keep.mean())
    adaptive.observe(source.produced)
    update = adaptive.update(throttler)
    if update is not None:
        source.install(update.filter)
    after = float(source.decide(streams[1]).keep.mean())
    return before, after, _threshold_miss(source)


def _threshold_miss(source: SifterFilter) -> float:
    """Largest difference between a region's threshold and the share dropped in it, where it saw 1,000 rows or more."""
    produced, dropped = source.produced[:-1], source.dropped[:-1]
    busy = produced >= 1000
    return float(np.abs(dropped[busy] / produced[busy] - source.filter.drop[busy]).max(initial=0.0))


def section(rates: Mapping[tuple[float, int], PassRate]) -> Section:
    """Mean and worst miss before and after."""
    rows = [
        [
            z,
            regions,
            float(np.mean(one.first)),
            _worst(one.first, z),
            float(np.mean(one.corrected)),
            _worst(one.corrected, z),
            one.worst_threshold_miss,
        ]
        for (z, regions), one in rates.items()
    ]
    header = ["z", "l", "pass rate", "worst miss", "after feedback", "worst miss", "worst miss of a threshold"]
    return Section("Pass rate", "Misses are relative to z.\n\n" + table(header, rows))


def claims(rates: Mapping[tuple[float, int], PassRate], config: Mapping[str, object]) -> list[Claim]:
    """The bars on budget and thresholds."""
    return [
        Claim(
            "budget-feedback",
            "largest relative miss of the throttler after feedback, over all seeds",
            "",
            max(_worst(one.corrected, z) for (z, _), one in rates.items()),
            at_most=0.01,
            config=dict(config) | {"before": max(_worst(one.first, z) for (z, _), one in rates.items())},
        ),
        Claim(
            "source-thresholds",
            "largest miss of a region's threshold by counter pairs, regions of 1,000 rows and more",
            "",
            max(one.worst_threshold_miss for one in rates.values()),
            at_most=0.01,
            config=config,
        ),
    ]


def _worst(rates: tuple[float, ...], throttler: float) -> float:
    return max(abs(rate - throttler) / throttler for rate in rates)
