"""Benchmarks that need no Spark: the controller against a simulated engine, and the coverage of the bounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import PointStats, Stats
from jettison.lab.bench.result import Result
from jettison.lab.coverage import measure_coverage
from jettison.lab.sim import harm, scenarios

_STEPS = 3000
_WINDOWS = 4000
_MIXED_FRACTIONS = (0.3, 0.5, 0.9)


def controller() -> list[Result]:
    """Time of a step and of a forecast, every overload beside the PID rate estimator, and every temptation to do harm.

    Bars are published with the worst seed and none is required: some are known to be missed, as `docs/controller.md` says.
    """
    return [*_times(), *_scenarios(), *_harm()]


def coverage() -> list[Result]:
    """Share of windows whose 95 % bounds hold the true answer, for groups of 30 to 100 kept rows."""
    results = []
    for distribution in ("taxi_fares", "lognormal"):
        for fractions in ((0.1,), (0.3,), _MIXED_FRACTIONS):
            for one in measure_coverage(distribution, fractions, (30.0, 100.0), windows=_WINDOWS):
                judged = one.flagged < 0.5  # a flagged answer makes no promise
                results.append(
                    Result(
                        f"coverage of {one.estimator}, {distribution}, kept {', '.join(map(str, fractions))}",
                        value=one.covered,
                        unit="",
                        at_least=0.93 if judged else None,
                        at_most=0.97 if judged else None,
                        config={"windows": one.windows, "flagged": one.flagged, "rows": list(one.rows)},
                    )
                )
    return results


def _times() -> Iterator[Result]:
    subject = Controller(ControlSettings(latency_bound_s=3.0))
    subject.initial()
    times_ms: dict[str, list[float]] = {"step": [], "forecast": []}
    for batch_id in range(_STEPS):
        stats = Stats(batch_id, 1e9 + 1.5 * batch_id, 1.4, {"rows": PointStats(600_000, 200_000)}, plan_version=1)
        started = time.perf_counter()
        subject.step(stats)
        between = time.perf_counter()
        subject.forecast(stats.committed_s + 1.0)
        times_ms["step"].append(1e3 * (between - started))
        times_ms["forecast"].append(1e3 * (time.perf_counter() - between))
    for name, taken in times_ms.items():
        yield Result(
            f"controller {name}",
            value=statistics.median(taken),
            unit="ms",
            at_most=1.0,
            config={"steps": _STEPS, "p99_ms": statistics.quantiles(taken, n=100)[98]},
        )


def _harm() -> Iterator[Result]:
    for case in harm.CASES:
        for figure, value in harm.measure(case):
            yield Result(
                f"{case.name}: {figure.name}, worst seed",
                value=value,
                unit=figure.unit,
                at_most=figure.bar.at_most,
                at_least=figure.bar.at_least,
                config={"seeds": len(scenarios.FRESH_SEEDS), "bound_s": case.bound_s},
            )


def _scenarios() -> Iterator[Result]:
    outcomes = scenarios.compare()
    baseline = {one.scenario: one for one in outcomes if one.regulator.startswith("PID, interval")}
    for one in outcomes:
        if one.regulator != "Jettison":
            continue
        pid = baseline[one.scenario]
        yield Result(
            f"{one.scenario}: p95 latency of the worst seed over the bound, against PID",
            value=one.worst_p95_latency_s,
            unit="s",
            baseline=pid.worst_p95_latency_s,
            ratio=one.worst_p95_latency_s / scenarios.LATENCY_BOUND_S,
            at_most=1.0,
            config={"mean_s": one.p95_latency_s, "pid_mean_s": pid.p95_latency_s},
        )
        yield Result(
            f"{one.scenario}: variation of the kept share, against PID",
            value=one.variation,
            unit="",
            baseline=pid.variation,
            at_most=0.15,
            config={"kept_to_ideal": one.kept_to_ideal, "pid_kept_to_ideal": pid.kept_to_ideal},
        )
