"""All that needs no engine: every method on every stream, once; sections and claims only read the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jettison.lab.reproduce.claims import Figure, judge
from jettison.lab.reproduce.concept import streams
from jettison.lab.reproduce.concept.borrowing import BorrowOutcome, run_borrowing
from jettison.lab.reproduce.concept.harness import Run, run, run_at
from jettison.lab.reproduce.concept.joins import JoinOutcome, run_joins
from jettison.lab.reproduce.concept.methods import (
    BATCHES,
    AsShipped,
    LastWindow,
    Method,
    PaperSetting,
    Reservoirs,
    Strict,
    Uniform,
)
from jettison.lab.reproduce.concept.streams import Stream
from jettison.lab.reproduce.report import Judged, RunSettings, Section, plot, table
from jettison.lab.reproduce.workers import processes
from jettison.policies.groups.concepts import ConceptShift, GroupConcept, shift
from jettison.policies.groups.group_setting import bytes_of_groups

TAXI, ZIPF, CLUSTER, FOUR, PACKETS = "taxi-like", "zipf", "cluster-like", "four classes", "packets"
ROUTES, RIDES = "routes", "taxi rides"
SHARES = (0.02, 0.05, 0.10, 0.25)
BIASES = (0.98, 0.90, 0.75, 0.50)
UNIFORM, EQUAL_CAPS, SHIPPED, RESERVOIRS = Uniform.name, Strict.name, AsShipped.name, Reservoirs.name
SHIPPED_LARGE = f"{SHIPPED}, 20,000 groups a plan"
_STEADY_WINDOWS = 25  # where few would let the seed decide
_TWO_SIDED_95 = 1.96


class AtSetting(NamedTuple):
    """The paper's form at b = 98 %, Uniform at 2 %, and other methods at the rows that the paper's form processes."""

    paper: Run
    uniform: Run
    uniform_same_rows: Run
    equal_caps_same_rows: Run
    shipped_same_rows: Run


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that was measured: at equal rows processed, by stream, share and method; at the paper's own setting and
    beside it, by stream; the paper's own form on the taxi-like stream, for each of `BIASES`; how far consecutive windows
    lie apart, by stream; and how values scatter within groups.
    """

    runs: Mapping[tuple[str, float, str], Run]
    settings: Mapping[str, AtSetting]
    by_bias: Sequence[Run]
    shifts: Mapping[str, Sequence[ConceptShift]]
    scatter: Mapping[str, tuple[float, float]]
    joins: Sequence[JoinOutcome]
    borrowing: Mapping[str, Sequence[BorrowOutcome]]


def methods(stream: Stream) -> list[Callable[[], Method]]:
    """All methods, each made afresh for a run; where there is but one group, those that differ there."""
    if stream.group_count == 1:
        return [Uniform, Strict]
    return [
        Uniform,
        Strict,
        partial(Strict, "concept, proportional", "proportional"),
        partial(Strict, "concept, Neyman", "neyman"),
        AsShipped,
        partial(AsShipped, SHIPPED_LARGE, plan_bytes=bytes_of_groups(20_000)),
        partial(AsShipped, f"{SHIPPED}, strict", strict=True),
        Reservoirs,
        partial(LastWindow, stream.group_count),
    ]


def simulated(settings: RunSettings) -> Judged:
    """Run all of it and judge."""
    results = measure(quick=settings.quick, seed=settings.seed)
    config = {"seed": settings.seed, "quick": settings.quick, "batches_per_window": BATCHES}
    figures = {**of_setting(results), **of_policy(results), **of_rule(results), **_beyond(results)}
    return _sections(results), judge("concept", figures, config)


def measure(*, quick: bool, seed: int) -> Results:
    """Run every experiment, several at a time; `quick` takes fewer windows and draws."""
    count = 4 if quick else 12
    taxi, zipf, cluster, four = (
        make(seed, count) for make in (streams.taxi_like, streams.zipf, streams.cluster_like, streams.four_classes)
    )
    packets = streams.packets(seed, max(30 * count, 240))  # a ratio of two means near 1 needs many windows
    grouped = [taxi, zipf, cluster, four, *streams.real_streams(count)]
    # Few classes and a handful of rows in most: errors of single windows differ by factors, so more of them are taken.
    # And ten largest groups are few: the mean of their change needs more windows than errors do.
    steady_cluster, steady_taxi = (make(seed, _STEADY_WINDOWS) for make in (streams.cluster_like, streams.taxi_like))
    cases = [(one, share) for one in grouped for share in SHARES] + [(packets, 0.01)]
    with processes(4) as pool:
        at_shares = [pool.submit(_at_equal_rows, one, share, methods(one), seed) for one, share in cases]
        at_half = [pool.submit(_at_equal_rows, one, 0.5, [Uniform], seed) for one in (taxi, zipf, cluster)]
        settings = {one.name: pool.submit(_at_setting, one, seed) for one in (taxi, steady_cluster, four)}
        by_bias = [pool.submit(run, taxi, PaperSetting, 1.0 - bias, seed) for bias in BIASES]
        joins = pool.submit(run_joins, [0.02, 0.05, 0.10], draws=100 if quick else 500, seed=seed)
        borrowing = {
            one.name: [pool.submit(run_borrowing, one, share, seed=seed) for share in SHARES[1:]]
            for one in (taxi, zipf)
        }
        return Results(
            {key: made for future in [*at_shares, *at_half] for key, made in future.result().items()},
            {name: future.result() for name, future in settings.items()},
            [future.result() for future in by_bias],
            {one.name: shifts_of(one) for one in [steady_taxi, *grouped[1:]]},
            {one.name: one.scatter() for one in grouped},
            joins.result(),
            {name: [future.result() for future in futures] for name, futures in borrowing.items()},
        )


def _at_equal_rows(
    stream: Stream, share: float, made_by: Iterable[Callable[[], Method]], seed: int
) -> dict[tuple[str, float, str], Run]:
    made = [run_at(stream, make, share, seed) for make in made_by]
    return {(stream.name, share, one.method): one for one in made}


def _at_setting(stream: Stream, seed: int) -> AtSetting:
    paper = run(stream, PaperSetting, 1.0 - BIASES[0], seed)
    return AtSetting(
        paper,
        run(stream, Uniform, 1.0 - BIASES[0], seed),
        run(stream, Uniform, paper.processed_share, seed),
        run_at(stream, Strict, paper.processed_share, seed),
        run_at(stream, AsShipped, paper.processed_share, seed),
    )


def shifts_of(stream: Stream) -> list[ConceptShift]:
    """How far consecutive windows lie apart."""
    concepts = [GroupConcept.of(window.groups) for window in stream.windows]
    return [shift(before, after) for before, after in pairwise(concepts)]


def _sections(results: Results) -> list[Section]:
    shifts = [
        [name, *(float(np.mean([getattr(s, field) for s in of])) for field in ("distance", "overlap", "top_change"))]
        for name, of in results.shifts.items()
    ]
    at_setting = [
        [name, field, one.method, one.processed_share, one.error, one.error_95, one.missing_share]
        for name, at in results.settings.items()
        for field, one in at._asdict().items()
    ]
    drawn = {
        method: [results.runs[TAXI, share, method] for share in SHARES]
        for method in (UNIFORM, EQUAL_CAPS, SHIPPED, RESERVOIRS)
    } | {"paper's setting": results.by_bias}
    lines = {name: {100 * one.processed_share: one.error for one in of} for name, of in drawn.items()}
    by_bias = [[bias, one.processed_share, one.error] for bias, one in zip(BIASES, results.by_bias, strict=True)]
    at_equal_rows = [
        [name, f"{share:.0%}", method, one.processed_share, one.error, one.missing_share, one.count_error]
        for (name, share, method), one in results.runs.items()
    ]
    joins = [[f"{o.share:.0%}", o.way, o.processed, o.error, o.coverage] for o in results.joins]
    borrowed = [
        [name, f"{o.share:.0%}", o.coverage, o.coverage_none, o.direct_error, o.error, o.flagged]
        for name, outcomes in results.borrowing.items()
        for o in outcomes
    ]
    rows, error = "rows processed", "mean error over groups"
    return [
        Section("Figure 2: drift", table(["stream", "distance", "overlap", "top ten changed"], shifts)),
        Section(
            "How values scatter within groups",
            table(
                ["stream", "deviation over mean", "of the variance, from 1 % of the rows"],
                [[name, *of] for name, of in results.scatter.items()],
            ),
        ),
        Section(
            "Figures 7 to 9: at the paper's setting, b = 98 %",
            table(["stream", "what", "method", rows, "error", "95th percentile", "groups missing"], at_setting),
        ),
        Section(
            "Figure 10: the paper's form over b; error against the rows really processed",
            table(["b", rows, "error"], by_bias),
            plot({TAXI: lines}, f"{rows}, %", error),
        ),
        Section(
            "All methods at equal rows processed",
            table(["stream", "asked", "method", rows, "error", "groups missing", "error of counts"], at_equal_rows),
        ),
        Section("Joins", table(["asked", "way", rows, "error of the count", "coverage of 95 % bounds"], joins)),
        Section(
            "Borrowed estimates",
            table(
                ["stream", "rows", "coverage", "of groups without rows", "unbiased error", "borrowed error", "flagged"],
                borrowed,
            ),
        ),
    ]


def of_setting(results: Results) -> dict[str, Figure]:
    """Figures 2, 7 to 9 and the start of 10: the paper's own setting, and others at the rows it really processes."""
    found: dict[str, Figure] = {"drift-taxi": float(np.mean([one.top_change for one in results.shifts[TAXI]]))}
    for name, label in ((TAXI, "taxi"), (CLUSTER, "cluster")):
        at = results.settings[name]
        windows = {"gain": round(_ratio(at.uniform_same_rows, at.paper), 4), "windows": len(at.paper.outcomes)}
        of_stream: dict[str, Figure] = {
            "setting-error": at.paper.error,
            "setting-error95": at.paper.error_95,
            "same-rows-missing": at.shipped_same_rows.missing_share,
            "setting-uniform": at.uniform.error,
            "setting-rows": at.paper.processed_share,
            "setting-gain-own": (gain_at_least(at.uniform_same_rows, at.paper), windows),
            "setting-gain": _ratio(at.uniform_same_rows, at.equal_caps_same_rows),
        }
        found |= {f"{claim}-{label}": figure for claim, figure in of_stream.items()}
    return found | {"setting-uniform-four": results.settings[FOUR].uniform.error}


def of_policy(results: Results) -> dict[str, Figure]:
    """`ConceptDrop` as a user gets it: on generated streams, and on real ones where they are at hand."""
    at = results.runs
    found: dict[str, Figure] = {}
    for name in [one for one in (TAXI, ZIPF, RIDES, ROUTES) if (one, 0.25, SHIPPED) in at]:
        label = name.replace(" ", "-")
        over = {share: _ratio(at[name, share, SHIPPED], at[name, share, SHIPPED_LARGE]) for share in SHARES}
        worst = max(over, key=lambda share: over[share])
        ours, uniform = at[name, 0.25, SHIPPED], at[name, 0.25, UNIFORM]
        found[f"default-plan-{label}"] = over[worst], {"share": worst}
        found[f"shipped-missing-{label}"] = ours.missing_share, {"uniform_missing": round(uniform.missing_share, 4)}
        found[f"shipped-counts-{label}"] = uniform.count_error / max(ours.count_error, 1e-9)
        if name in (ROUTES, RIDES):
            part = (uniform.error - ours.error) / (uniform.error - at[name, 0.25, RESERVOIRS].error)
            found[f"shipped-near-best-{label}"] = part, {"gain": round(_ratio(uniform, ours), 4)}
    return found


def of_rule(results: Results) -> dict[str, Figure]:
    """Rules and baselines at equal rows, and the rest of figure 10: whether less data is enough."""
    at = results.runs
    found: dict[str, Figure] = {}
    for key, method in (("gain", EQUAL_CAPS), ("shipped-gain", SHIPPED)):
        for name, share in ((ZIPF, 0.05), (ZIPF, 0.10), (ZIPF, 0.25), (TAXI, 0.25)):
            ours, uniform = at[name, share, method], at[name, share, UNIFORM]
            rows = {"ours_processed": ours.processed_share, "uniform_processed": uniform.processed_share}
            found[f"{key}-{name}-{share:.0%}"] = _ratio(uniform, ours), rows
    for share in SHARES[1:]:  # at 5 % the floor of 10 rows a group takes nearly all, and the allocations agree
        ours = at[ZIPF, share, EQUAL_CAPS]
        others = [at[ZIPF, share, f"concept, {rule}"].error for rule in ("proportional", "Neyman")]
        found[f"missing-{share:.0%}"] = ours.missing_share
        found[f"equal-caps-{share:.0%}"] = min(others) / max(ours.error, 1e-9)
    found["missing-last-window"] = at[ZIPF, 0.10, LastWindow.name].missing_share
    found["scalar-equal"] = _ratio(at[PACKETS, 0.01, UNIFORM], at[PACKETS, 0.01, EQUAL_CAPS])
    for name in (TAXI, ZIPF, CLUSTER):
        found[f"volume-{name}"] = _ratio(at[name, 0.5, UNIFORM], at[name, 0.02, EQUAL_CAPS])
    found["volume-setting"] = _ratio(at[TAXI, 0.5, UNIFORM], results.settings[TAXI].paper)
    return found


def _beyond(results: Results) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for share in sorted({outcome.share for outcome in results.joins}):
        by_way = {outcome.way: outcome for outcome in results.joins if outcome.share == share}
        best = min(outcome.error for way, outcome in by_way.items() if way != "hybrid")
        found[f"join-gain-{share:.0%}"] = best / by_way["hybrid"].error
        found[f"join-coverage-{share:.0%}"] = by_way["hybrid"].coverage
    for name, outcomes in results.borrowing.items():
        shed = [one.shed_groups for one in outcomes]
        found[f"borrow-coverage-{name}"] = float(np.average([one.coverage for one in outcomes], weights=shed))
        found[f"borrow-error-{name}"] = outcomes[0].direct_error / outcomes[0].error
    return found


def _ratio(worse: Run, better: Run) -> float:
    return worse.error / max(better.error, 1e-9)


def gain_at_least(worse: Run, better: Run) -> float:
    """Lower end of a 95 % interval of the ratio of mean errors, both measured on the same windows.

    Where a gain lies near its bar, the seed decides on which side of it the ratio itself falls.
    """
    high, low = (np.array([outcome.error for outcome in run.outcomes]) for run in (worse, better))
    ratio = _ratio(worse, better)
    gaps = (high - ratio * low) / max(float(low.mean()), 1e-9)
    return ratio - _TWO_SIDED_95 * float(gaps.std(ddof=1)) / float(np.sqrt(len(gaps)))
