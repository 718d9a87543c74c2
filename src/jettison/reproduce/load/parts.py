"""The experiments by name, each at its full size and at the size of a quick look."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jettison.reproduce.claims import Claim
from jettison.reproduce.load.application import run_application
from jettison.reproduce.load.corrections import run_corrections
from jettison.reproduce.load.phases import run_phases
from jettison.reproduce.load.sensitivity import EXPERIMENTS, Experiment
from jettison.reproduce.load.speed import run_speed
from jettison.reproduce.load.sweep import Runs
from jettison.reproduce.load.utility import run_utility
from jettison.reproduce.report import RunSettings, Section

Judged = tuple[list[Section], list[Claim]]
Part = Callable[[RunSettings], Judged]


def _runs(settings: RunSettings, orders: int = 50) -> Runs:
    """The paper's 100 associations x 50 orders; quickly each association in one order."""
    return Runs(100, 1 if settings.quick else orders, settings.seed)


def _figure(experiment: Experiment) -> Part:
    def part(settings: RunSettings) -> Judged:
        runs = _runs(settings)
        if settings.quick and experiment is EXPERIMENTS[0]:
            runs = Runs(400, 1, settings.seed)  # the same reason as for the orders at 90 %
        section, claims, _ = experiment.run(runs)
        return [section], claims

    return part


def _phases(settings: RunSettings) -> Judged:
    section, claims = run_phases(streams=50 if settings.quick else 200, seed=settings.seed)
    return [section], claims


def _corrections(settings: RunSettings) -> Judged:
    section, claims = run_corrections(_runs(settings, orders=5))
    return [section], claims


def _utility(settings: RunSettings) -> Judged:
    section, claims = run_utility(_runs(settings, orders=5))
    return [section], claims


def _speed(settings: RunSettings) -> Judged:
    section, claims = run_speed(settings.seed)
    return [section], claims


def _on_spark(name: str) -> Part:
    def part(settings: RunSettings) -> Judged:
        from jettison.reproduce.load import spark_part  # needs pyspark, which the simulator does not

        run: Callable[..., tuple[Section, list[Claim]]] = getattr(spark_part, name)
        section, claims = run(quick=settings.quick, seed=settings.seed)
        return [section], claims

    return part


PARTS: Mapping[str, Part] = {
    **{f"figure{number}": _figure(experiment) for number, experiment in enumerate(EXPERIMENTS, start=4)},
    "figure9": _phases,
    "figure11": lambda settings: run_application(settings.seed),
    "corrections": _corrections,
    "utility": _utility,
    "speed": _speed,
    "spark-figure10": _on_spark("phases"),
    "spark-figure11": _on_spark("application"),
    "spark-overhead": _on_spark("overhead"),
    "spark-executors": _on_spark("executors"),
}
ON_SPARK = frozenset(name for name in PARTS if name.startswith("spark-"))
