"""How often the true answer lies between the bounds, measured on simulated windows.

The population of each window is drawn, its rows are kept at random as a backend would, and the bounds of
`jettison.answers.estimate` are held against the answer over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from jettison.answers import estimate
from jettison.answers.ranks import percentile_estimate
from jettison.errors import did_you_mean, refuse
from jettison.lab import sampled

Floats = NDArray[np.float64]
_WINDOWS_AT_ONCE = 1000
_ESTIMATES = {
    "count": estimate.count_estimate,
    "sum": estimate.sum_estimate,
    "avg": estimate.mean_estimate,
    "variance": estimate.variance_estimate,
    "stddev": estimate.stddev_estimate,
}


def taxi_fares(random: np.random.Generator, rows: int) -> Floats:
    """Fares in a taxi-like currency: 2.50 to enter, then 1.75 for each of a log-normal number of kilometres, in cents."""
    return np.round(2.5 + 1.75 * random.lognormal(0.9, 0.65, rows), 2)


def lognormal(random: np.random.Generator, rows: int) -> Floats:
    """Log-normal with sigma 1: skewness 6.2, excess kurtosis 111."""
    return random.lognormal(0.0, 1.0, rows)


Draw = Callable[[np.random.Generator, int], Floats]

PUBLISHED: Mapping[str, Draw] = MappingProxyType({"taxi_fares": taxi_fares, "lognormal": lognormal})
"""What the constants of the bounds were set on."""

OTHERS: Mapping[str, Draw] = MappingProxyType(
    {
        "normal": lambda random, rows: random.normal(10.0, 1.0, rows),
        "uniform": lambda random, rows: random.random(rows),
        "exponential": lambda random, rows: random.exponential(1.0, rows),
        "minus_lognormal_0.8": lambda random, rows: -random.lognormal(0.0, 0.8, rows),
        "one_in_ten": lambda random, rows: (random.random(rows) < 0.1).astype(np.float64),
        "lognormal_1.5": lambda random, rows: random.lognormal(0.0, 1.5, rows),
        "pareto_2.5": lambda random, rows: 1.0 + random.pareto(2.5, rows),
    }
)
"""What they were not set on; a number is sigma, or Pareto's exponent."""

DISTRIBUTIONS: Mapping[str, Draw] = MappingProxyType({**PUBLISHED, **OTHERS})

KEEP_FRACTIONS: tuple[tuple[float, ...], ...] = (
    *((0.05,), (0.1,), (0.3,), (0.7,), (0.9,)),
    *((0.3, 0.5, 0.9), (0.05, 0.1, 0.2), (1.0, 0.3, 0.5), (0.9, 0.1)),
)
"""Keep fractions of the published table; several in one window follow each other, as micro-batches do."""

PERCENTILES: Mapping[str, float] = MappingProxyType({"median": 0.5, "p90": 0.9})
NONE: Mapping[str, float] = MappingProxyType({})

BANDS: tuple[tuple[float, float], ...] = ((10.0, 30.0), (30.0, 100.0), (100.0, 300.0))
"""Effective rows kept, from and below, of the published table."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of one estimator's bounds over the windows whose effective rows lay in `rows`.

    `covered` and `flagged` are shares of windows: with the true answer between the bounds, with the status 'few rows'.
    """

    estimator: str
    distribution: str
    keep_fractions: tuple[float, ...]
    rows: tuple[float, float]
    windows: int
    covered: float
    flagged: float


def measure_coverage(
    distribution: str = "taxi_fares",
    keep_fractions: Sequence[float] = (0.1,),
    rows: tuple[float, float] = (30.0, 60.0),
    *,
    windows: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    percentiles: Mapping[str, float] = NONE,
) -> tuple[Coverage, ...]:
    """Simulate windows until `windows` of them have effective rows in the band `rows`; one result per estimator.

    Keep fractions are shares kept in equal parts of the window, one after the other; 1 stands for protected rows. Under a
    single one the effective rows, from and below, are simply the rows kept. `percentiles` are shares by name, such as
    `PERCENTILES`, and measured last.

    Examples
    --------
    >>> count = measure_coverage("taxi_fares", [0.3], windows=2000, seed=1)[0]
    >>> count.estimator, 0.93 <= count.covered <= 0.97
    ('count', True)

    Notes
    -----
    Window sizes are drawn log-uniformly well beyond the band. With one fixed size, the windows that happen to keep enough
    rows would be those whose count came out high, and their coverage would say more about that choice than about bounds.
    """
    if distribution not in DISTRIBUTIONS:
        refuse(
            f"`distribution` must be one of {sorted(DISTRIBUTIONS)}",
            repr(distribution),
            hint=did_you_mean(distribution, DISTRIBUTIONS, otherwise="begin with 'taxi_fares'"),
        )
    if not any(0.0 < fraction < 1.0 for fraction in keep_fractions):
        refuse(
            "`keep_fractions` must hold one between 0 and 1",
            repr(list(keep_fractions)),
            hint="bounds are of width 0 where every row is kept, and there is no answer where none is; try 0.3",
        )
    random, z = np.random.default_rng(seed), estimate.quantile(confidence)
    chunks: list[dict[str, Floats]] = []
    found = 0
    while found < windows:
        chunk = _chunk(random, DISTRIBUTIONS[distribution], np.asarray(keep_fractions, float), rows, z, percentiles)
        chunks.append(chunk)
        found += len(chunk["count"])
    made = []
    for name in chunks[0]:
        truth, lower, upper, enough = np.concatenate([chunk[name] for chunk in chunks])[:windows].T
        rounding = 1e-9 * np.abs(truth)
        covered = 1.0 - float(np.mean(truth < lower - rounding)) - float(np.mean(truth > upper + rounding))
        flagged = float(np.mean(enough == 0.0))
        made.append(Coverage(name, distribution, tuple(keep_fractions), rows, len(truth), covered, flagged))
    return tuple(made)


def _chunk(
    random: np.random.Generator,
    draw: Draw,
    fractions: Floats,
    rows: tuple[float, float],
    z: float,
    percentiles: Mapping[str, float],
) -> dict[str, Floats]:
    """Columns truth, lower, upper, enough of each estimator, for the windows that fall into the band."""
    sizes = _sizes(random, fractions, rows)
    ends = np.cumsum(sizes)
    starts, window = ends - sizes, np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(ends[-1]) - starts[window]
    x, fraction = draw(random, int(ends[-1])), fractions[place * len(fractions) // sizes[window]]
    kept = random.random(len(x)) < fraction
    values, weights = (_matrix(window[kept], of[kept], len(sizes)) for of in (x, 1.0 / fraction))
    sums, moments = sampled.describe(values, np.nan_to_num(weights, nan=1.0))
    band = estimate.effective_rows(sampled.NUMPY, sums)
    inside = (band >= rows[0]) & (band < rows[1])
    total = np.add.reduceat(x, starts)
    variance = np.add.reduceat((x - (total / sizes)[window]) ** 2, starts) / (sizes - 1.0)
    truths = {"count": sizes, "sum": total, "avg": total / sizes, "variance": variance, "stddev": np.sqrt(variance)}
    made = {name: make(sampled.NUMPY, sums, moments, z) for name, make in _ESTIMATES.items()}
    for name, share in percentiles.items():
        truths[name] = np.array([np.quantile(part, share) for part in np.split(x, starts[1:])])
        ranks = sampled.describe_ranks(values, np.nan_to_num(weights, nan=1.0), share)
        made[name] = percentile_estimate(share)(sampled.NUMPY, sums, ranks, z)
    return {
        name: np.stack([truth, made[name].lower, made[name].upper, made[name].enough], axis=1)[inside]
        for name, truth in truths.items()
    }


def _sizes(random: np.random.Generator, fractions: Floats, rows: tuple[float, float]) -> NDArray[np.int64]:
    excess = 1.0 / fractions - 1.0
    effective = np.mean(excess) ** 2 / np.mean(excess**2 / fractions)  # effective rows kept per row of the window
    low, high = np.log(rows[0] / 2.0 / effective), np.log(rows[1] * 2.0 / effective)
    return np.maximum(np.exp(random.uniform(low, high, _WINDOWS_AT_ONCE)).round(), 2.0).astype(np.int64)


def _matrix(window: NDArray[np.int64], x: Floats, windows: int) -> Floats:
    """One line per window, filled up with NaN."""
    counts = np.bincount(window, minlength=windows)
    matrix = np.full((windows, max(int(counts.max()), 1)), np.nan)
    matrix[window, np.arange(len(x)) - (np.cumsum(counts) - counts)[window]] = x
    return matrix


def table(results: Iterable[Sequence[Coverage]]) -> Iterable[str]:
    """A line for each case, in Markdown."""
    for number, case in enumerate(results):
        first, shown = case[0], _shown(case)
        if number == 0:
            yield from _head("values", "keep fractions", "effective rows", *(one.estimator for one in shown))
        fractions = ", ".join(f"{fraction:g}" for fraction in first.keep_fractions)
        cells = [f"{100 * one.covered:.1f}" + (" (flagged)" if one.flagged > 0.5 else "") for one in shown]
        yield f"| {first.distribution} | {fractions} | {first.rows[0]:g} to {first.rows[1]:g} | {' | '.join(cells)} |"


def ranges(results: Iterable[Sequence[Coverage]]) -> Iterable[str]:
    """Lowest and highest of each distribution's cells; of flagged ones only where there are no others."""
    for number, (distribution, cases) in enumerate(groupby(results, lambda case: case[0].distribution)):
        cells, columns = [], list(zip(*map(_shown, cases), strict=True))
        if number == 0:
            yield from _head("values", *(column[0].estimator for column in columns))
        for column in columns:
            trusted = [100 * one.covered for one in column if one.flagged <= 0.5]
            shares = trusted or [100 * one.covered for one in column]
            cells.append(f"{min(shares):.1f} to {max(shares):.1f}" + ("" if trusted else " (flagged)"))
        yield f"| {distribution} | {' | '.join(cells)} |"


def _shown(case: Sequence[Coverage]) -> list[Coverage]:
    return [one for one in case if one.estimator != "stddev"]  # covered as the variance is: roots keep order


def _head(*names: str) -> Iterable[str]:
    yield f"| {' | '.join(names)} |".replace("variance", "variance, stddev")
    yield "|---" * len(names) + "|"
