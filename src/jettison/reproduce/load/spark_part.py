"""All that runs on Spark: figures 10 and 11, one and two executors, and the overhead while nothing is shed."""

from __future__ import annotations

from jettison.reproduce.claims import Claim
from jettison.reproduce.load.executors import measure
from jettison.reproduce.load.spark_figures import BOUND_S, CORES, run_spark_application, run_spark_phases
from jettison.reproduce.load.spark_overhead import run_spark_overhead
from jettison.reproduce.report import Section, table
from jettison.spark.session import local_session

_NAME, _MASTER = "jettison-load", f"local[{CORES}]"


def phases(*, quick: bool, seed: int) -> tuple[Section, list[Claim]]:
    """Figure 10."""
    with local_session(_NAME, master=_MASTER) as spark:
        return run_spark_phases(spark, phase_s=2.5 if quick else 10.0, seed=seed)


def application(*, quick: bool, seed: int) -> tuple[Section, list[Claim]]:
    """Figure 11."""
    with local_session(_NAME, master=_MASTER) as spark:
        return run_spark_application(spark, seconds=7.0 if quick else 30.0, compare_nothing=not quick, seed=seed)


def overhead(*, quick: bool, seed: int) -> tuple[Section, list[Claim]]:
    """While nothing is shed; no randomness in it."""
    with local_session(_NAME, master=_MASTER) as spark:
        return run_spark_overhead(spark, repetitions=2 if quick else 4)


def executors(*, quick: bool, seed: int) -> tuple[Section, list[Claim]]:
    """One and two executors, each a process of its own."""
    seconds = 8.0 if quick else 30.0
    figures = {number: measure(number, seconds, seed) for number in (1, 2)}
    rows = [[number, over_bound, dropped] for number, (over_bound, dropped) in figures.items()]
    section = Section("Executors of their own", table(["executors", "mean wait / bound", "dropped"], rows))
    return section, [
        Claim(f"spark-executors-{number}", f"the bound is held within 20 % with {number} executor(s): mean wait / bound",
              "", over_bound, at_most=1.2, config={"bound_s": BOUND_S, "seconds": seconds, "seed": seed})
        for number, (over_bound, _) in figures.items()
    ]  # fmt: skip
