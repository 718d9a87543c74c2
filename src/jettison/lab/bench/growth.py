"""How a cost grows with a size: the exponent that fits, with its interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from jettison.lab.bench.result import Result
from jettison.lab.intervals import Interval

N_LOG_N = 1.0
"""Bar on exponents against n log n."""
_LEAST_SIZES = 3


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> Interval:
    """The b in `cost = a * size ** b`, by least squares on logarithms, with its 95 % interval by Student's t.

    >>> found = exponent([10, 100, 1000, 10_000], [2, 20, 200, 2000])
    >>> round(found.value, 6), round(found.lower, 6)
    (1.0, 1.0)
    """
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(costs, float))
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf(0.975, max(len(x) - 2, 1)) * fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half)


def grows(name: str, costs: Mapping[int, float], unit: str, *, fixed: float | None = None) -> Result:
    """A result whose value is the exponent against n log n, over the larger half of the sizes.

    Of small sizes most is fixed cost, which would make the exponent look better than it is. `fixed` is taken off first,
    where it is known. A size at which nothing is left says that the rest is noise: there is then no exponent.
    """
    kept = list(costs)[-max(_LEAST_SIZES, (len(costs) + 1) // 2) :]
    measured = {size: costs[size] - (fixed or 0.0) for size in kept}
    sizes = [size * np.log2(size) for size in kept]
    fits = len(kept) >= _LEAST_SIZES and all(cost > 0.0 for cost in measured.values())
    found = exponent(sizes, list(measured.values())) if fits else Interval(np.nan, -np.inf, np.inf)
    config = {"costs": {str(size): round(cost, 6) for size, cost in costs.items()}, "unit": unit, "fitted": kept}
    # The interval is judged: a fit of three sizes, which is wide, decides nothing that is close.
    return Result(
        f"{name}: exponent against n log n",
        found.value,
        "",
        at_most=N_LOG_N + 0.1,
        config=config,
        interval=(found.lower, found.upper),
    )


def fastest_ms(run: Callable[[], object], repetitions: int) -> float:
    """The fastest of several runs, in time of the processor: what one core does when nothing else interferes."""
    times = []
    for _ in range(repetitions):
        started = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - started))
    return min(times)
