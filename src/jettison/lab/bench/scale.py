"""`jettison bench scale`: what Jettison costs as things grow, with fitted exponents; nothing worse than n log n.

Without Spark: making and reading plans. On Spark: rows in a batch, and groups.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

import numpy as np
from rich.console import Console

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.growth import fastest_ms, grows
from jettison.lab.bench.paired import Pairs
from jettison.lab.bench.result import Result
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.lab.sim.network.generator import Shape, random_network
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.regions.build import Sample, build
from jettison.policies.uniform.uniform_drop import UniformDrop

_BUDGET = Budget(0.3, 0.3, 3.0, "a third fits")
_SAMPLES, _FAIRNESS = 3_000, 0.5
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
GROUPS = (10, 100, 1_000, 10_000, 100_000, 300_000, 1_000_000)
EXECUTORS = (1, 2)
_BATCHES, _OF_EXECUTORS = 3, (1_000_000, 100)
_WITHIN_S = 3600.0


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


def groups(
    repetitions: int, sizes: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000, 300_000, 1_000_000)
) -> list[Result]:
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
    bytes_of = grows("bytes of a plan, by groups", size, "bytes")
    return [
        grows("groups counted, by groups", learned, "ms"),
        grows("a plan made, by groups", made, "ms"),
        replace(bytes_of, config={**bytes_of.config, "most_bytes": max(size.values())}),
    ]


def regions(repetitions: int, sizes: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1_024)) -> list[Result]:
    """A sifter's filter of so many regions, from 1,000 queries and 3,000 rows."""
    return [grows("a sifter, by regions", _sifters(repetitions, {size: (1_000, size) for size in sizes}), "ms")]


def queries(
    repetitions: int, sizes: tuple[int, ...] = (10, 100, 1_000, 3_000, 10_000, 30_000, 100_000)
) -> list[Result]:
    """A sifter's filter of 16 regions, from so many queries."""
    return [grows("a sifter, by queries", _sifters(repetitions, {size: (size, 16) for size in sizes}), "ms")]


def rows_on_spark(repetitions: int, sizes: tuple[int, ...] = ROWS) -> list[Result]:
    """Task CPU that a guard adds to a native aggregate, by rows in a batch."""
    return _on_spark(repetitions, {rows: (rows, 100) for rows in sizes}, "a guard on Spark, by rows in a batch")


def groups_on_spark(repetitions: int, sizes: tuple[int, ...] = GROUPS) -> list[Result]:
    """Task CPU of a guarded grouped sum, by groups, at a million rows a batch."""
    return _on_spark(repetitions, {groups: (1_000_000, groups) for groups in sizes}, "a guard on Spark, by groups")


def executors_on_spark(repetitions: int, counts: tuple[int, ...] = EXECUTORS) -> list[Result]:
    """Task CPU and time of a guarded batch over plain, with executors in processes of their own."""
    return [one for count in counts for one in in_fresh_process(_WITHIN_S, _with_executors, count, repetitions)]


CASES: Mapping[str, Callable[[int], list[Result]]] = {
    "drop-points": drop_points,
    "groups": groups,
    "regions": regions,
    "queries": queries,
    "spark-rows": rows_on_spark,
    "spark-groups": groups_on_spark,
    "executors": executors_on_spark,
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

    cpu_s: dict[str, dict[int, float]] = {}
    with recorded_session("jettison bench") as spark, tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
        from jettison.lab.bench.scale_on_spark import SHEDS, costs

        for size, (rows, keys) in sizes.items():
            for side, runs in costs(spark, Path(scratch) / str(size), rows, keys, _BATCHES, repetitions).items():
                cpu_s.setdefault(side, {})[size] = statistics.median(run.batch_cpu_s for run in runs)
    return [grows(f"{name}: task CPU", cpu_s[SHEDS], "s a batch"), added(name, cpu_s)]


def added(name: str, cpu_s: Mapping[str, Mapping[int, float]]) -> Result:
    """What a guard adds that keeps all rows: one that sheds saves more than it costs."""
    from jettison.lab.bench.scale_on_spark import IDLE, PLAIN

    more = {size: max(cpu_s[IDLE][size] - cpu_s[PLAIN][size], 0.0) for size in cpu_s[PLAIN]}
    return grows(f"{name}: task CPU added while nothing is shed", more, "s a batch")


def _with_executors(count: int, repetitions: int) -> list[Result]:
    from jettison.lab.bench.fault_run import spark_home
    from jettison.lab.bench.scale_on_spark import IDLE, SHEDS, costs
    from jettison.lab.recorded_session import recorded_session

    with tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
        folder = Path(scratch)
        os.environ["SPARK_HOME"] = str(spark_home(folder))
        with recorded_session("jettison bench", master=f"local-cluster[{count},1,1024]") as spark:
            runs = costs(spark, folder / "run", *_OF_EXECUTORS, _BATCHES, repetitions)
    of = Pairs(runs, config={"executors": count, "rows_per_batch": _OF_EXECUTORS[0], "groups": _OF_EXECUTORS[1]})
    return [
        of.over(f"{count} executors, {side}: {what}", side, attrgetter(measure), "s")
        for side in (IDLE, SHEDS)
        for what, measure in (("task CPU of a batch", "batch_cpu_s"), ("time of a batch", "batch_s"))
    ]


def _times(count: int, run: Callable[[], object]) -> Callable[[], None]:
    def repeat() -> None:
        for _ in range(count):
            run()

    return repeat
