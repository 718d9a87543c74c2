"""All that runs on Spark: figures 10 and 11, one and two executors, and the overhead while nothing is shed."""

from __future__ import annotations

from collections.abc import Callable

from jettison.reproduce.claims import Claim
from jettison.reproduce.load import executors
from jettison.reproduce.load.spark_figures import BOUND_S, run_spark_application, run_spark_phases
from jettison.reproduce.load.spark_overhead import run_spark_overhead
from jettison.reproduce.report import Section, table
from jettison.spark.session import local_session

Told = Callable[[list[Section], list[Claim], str], None]


def run_spark(tell: Told, *, quick: bool, seed: int) -> None:
    """Run each part and tell its sections and claims."""
    with local_session("jettison-load", master="local[2]") as spark:
        section, claims = run_spark_phases(spark, phase_s=4.0 if quick else 20.0, seed=seed)
        tell([section], claims, section.title)
        section, claims = run_spark_application(spark, seconds=8.0 if quick else 60.0, seed=seed)
        tell([section], claims, section.title)
        section, claims = run_spark_overhead(spark, repetitions=1 if quick else 5)
        tell([section], claims, section.title)
    section, claims = _executors(seconds=8.0 if quick else 60.0, seed=seed)
    tell([section], claims, section.title)


def _executors(seconds: float, seed: int) -> tuple[Section, list[Claim]]:
    figures = {number: executors.measure(number, seconds, seed) for number in (1, 2)}
    rows = [[number, over_bound, dropped] for number, (over_bound, dropped) in figures.items()]
    section = Section("Executors of their own", table(["executors", "mean wait / bound", "dropped"], rows))
    return section, [
        Claim(f"spark-executors-{number}", f"the bound is held within 20 % with {number} executor(s): mean wait / bound",
              "", over_bound, at_most=1.2, config={"bound_s": BOUND_S, "seconds": seconds, "seed": seed})
        for number, (over_bound, _) in figures.items()
    ]  # fmt: skip
