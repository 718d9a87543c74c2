"""`jettison bench scale`: what Jettison costs as things grow, with fitted exponents; nothing worse than n log n.

Without Spark: making and reading plans. On Spark: rows in a batch, and groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.growth import fastest_ms, grows
from jettison.lab.bench.result import Result
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.lab.sim.network.generator import Shape, random_network
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.regions.build import Sample, build
from jettison.policies.uniform.uniform_drop import UniformDrop

_BUDGET = Budget(0.3, 0.3, 3.0, "a third fits")
_SAMPLES, _FAIRNESS = 3_000, 0.5
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
GROUPS = (10, 1_000, 100_000, 1_000_000)
_BATCHES = 3


def scale(console: Console, only: str | None, repetitions: int) -> Iterator[list[Result]]:
    """All cases, or one."""
    for name, case in chosen(CASES, only).items():
        console.print(f"  {name} ...", highlight=False)
        yield case(repetitions)


def drop_points(repetitions: int, sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200)) -> list[Result]:
    """A plan for so many drop points, made, written and read; and one of a network with so many boxes."""
    made, read, size, network = {}, {}, {}, {}
    for points in sizes:
        stats = Stats(0, 0.0, 1.0, {f"point{n}": PointStats(1000, 1000) for n in range(points)})
        plan = partial(UniformDrop().plan, stats, _BUDGET)
        made[points] = fastest_ms(_times(20, plan), repetitions)
        text = plan().to_json()
        size[points] = float(len(text))
        read[points] = fastest_ms(_times(20, partial(DropPlan.from_json, text)), repetitions)
        if points >= 10:
            graph = random_network(
                1, shape=Shape(queries=max(points // 9, 1), filters=points * 3 // 4, unions=points // 4)
            )
            network_plan = partial(_network_plan, graph)
            network[points] = fastest_ms(network_plan, min(repetitions, 3))
    return [
        grows("a plan, made, by drop points", made, "ms for 20"),
        grows("a plan, read, by drop points", read, "ms for 20"),
        grows("bytes of a plan, by drop points", size, "bytes"),
        grows("a network's first plan, by boxes", network, "ms"),
    ]


def groups(repetitions: int, sizes: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000, 1_000_000)) -> list[Result]:
    """A plan by group: counting so many groups, and making the plan, whose size is bounded."""
    learned, made, size = {}, {}, {}
    random = np.random.default_rng(1)
    for count in sizes:
        keys = np.unique(random.integers(-(2**31), 2**31, count))
        rows = random.zipf(1.5, len(keys)).clip(max=10_000).astype(float)
        policy = ConceptDrop(group="key", time="at", window="10 seconds")
        add = partial(policy.groups.book("rows").add, np.zeros(len(keys), np.int64), keys, rows, newest_us=5_000_000)
        learned[count] = fastest_ms(add, repetitions)
        plan = partial(policy.plan, Stats(1, 0.0, 1.0, {"rows": PointStats(int(rows.sum()), 1)}), _BUDGET)
        made[count] = fastest_ms(plan, repetitions)
        size[count] = float(len(plan().to_json()))
    most = {"most_bytes": max(size.values())}
    bytes_of = grows("bytes of a plan, by groups", size, "bytes")
    return [
        grows("groups counted, by groups", learned, "ms"),
        grows("a plan made, by groups", made, "ms"),
        Result(bytes_of.name, bytes_of.value, "", at_most=bytes_of.at_most, config={**bytes_of.config, **most}),
    ]


def regions(repetitions: int, sizes: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1_024)) -> list[Result]:
    """A sifter's filter of so many regions, from 1,000 queries and 3,000 rows."""
    return [grows("a sifter, by regions", _sifters(repetitions, {size: (1_000, size) for size in sizes}), "ms")]


def queries(repetitions: int, sizes: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000)) -> list[Result]:
    """A sifter's filter of 16 regions, from so many queries."""
    return [grows("a sifter, by queries", _sifters(repetitions, {size: (size, 16) for size in sizes}), "ms")]


def rows_on_spark(repetitions: int, sizes: tuple[int, ...] = ROWS) -> list[Result]:
    """Task CPU that a guard adds to a native aggregate, by rows in a batch."""
    return _on_spark(repetitions, {rows: (rows, 100) for rows in sizes}, "a guard on Spark, by rows in a batch")


def groups_on_spark(repetitions: int, sizes: tuple[int, ...] = GROUPS) -> list[Result]:
    """Task CPU of a guarded grouped sum, by groups, at a million rows a batch."""
    return _on_spark(repetitions, {groups: (1_000_000, groups) for groups in sizes}, "a guard on Spark, by groups")


CASES: Mapping[str, Callable[[int], list[Result]]] = {
    "drop-points": drop_points,
    "groups": groups,
    "regions": regions,
    "queries": queries,
    "spark-rows": rows_on_spark,
    "spark-groups": groups_on_spark,
}


def _network_plan(graph: QueryGraph) -> DropPlan:
    """From a network to its first plan."""
    return NetworkDrop(graph).plan(Stats(0, 0.0, 1.0), _BUDGET)


def _sifters(repetitions: int, sizes: Mapping[int, tuple[int, int]]) -> dict[int, float]:
    found = {}
    for size, (count, parts) in sizes.items():
        drawn = Generated(Workload(queries=count), 1)
        rows = drawn.rows(_SAMPLES)

        def made(drawn: Generated = drawn, rows: np.ndarray = rows, parts: int = parts) -> None:
            sample = Sample.of(drawn.queries, rows)
            build(drawn.queries, sample, partitioning="qdpart", regions=parts).filter(0.5, _FAIRNESS)

        found[size] = fastest_ms(made, min(repetitions, 3))
    return found


def _on_spark(repetitions: int, sizes: Mapping[int, tuple[int, int]], name: str) -> list[Result]:
    from jettison.lab.recorded_session import recorded_session  # only here: the other cases need no pyspark

    plain, guard = {}, {}
    with recorded_session("jettison bench") as spark, tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
        from jettison.lab.bench.scale_on_spark import batch_cpu_s

        for size, (rows, keys) in sizes.items():
            found = batch_cpu_s(spark, Path(scratch) / str(size), rows, keys, _BATCHES, repetitions)
            plain[size], guard[size] = found["plain"], found["guard"]
    added = {size: max(guard[size] - plain[size], 0.0) for size in sizes}
    return [grows(f"{name}: task CPU", guard, "s a batch"), grows(f"{name}: task CPU added", added, "s a batch")]


def _times(count: int, run: Callable[[], object]) -> Callable[[], None]:
    def repeat() -> None:
        for _ in range(count):
            run()

    return repeat
