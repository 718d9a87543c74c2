"""The table of a profile, and which parts it names. Starts no Spark."""

from __future__ import annotations

from jettison.lab.bench.profile import parts_of, table
from jettison.lab.bench.steady import Steady


def steady(tasks: float, compiler: float, python: float, batch: float) -> Steady:
    cpu = {"tasks": tasks, "JIT compiler": compiler, "listener bus": 1.0, "Python": python}
    return Steady(cpu, {"triggerExecution": batch}, classes=0, threads=1)


RUNS = {
    "plain": [steady(50, 5, 1, 170), steady(52, 5, 1, 172), steady(90, 5, 1, 400)],
    "idle": [steady(150, 9, 8, 300)],
    "shedding": [steady(40, 30, 8, 200)],
}


def test_each_part_is_the_median_of_its_runs() -> None:
    parts = parts_of(RUNS)
    assert parts["CPU: tasks"] == {"plain": 52, "idle": 150, "shedding": 40}
    assert parts["time: triggerExecution"]["plain"] == 172


def test_the_largest_parts_beyond_plain_are_named_in_their_order() -> None:
    lines = list(table(parts_of(RUNS)))
    assert lines[0] == "| ms a batch | plain | idle | shedding |"
    assert "| CPU: tasks | 52.0 | 150.0 | 40.0 |" in lines
    assert lines[-2] == "idle, most beyond plain: tasks +98.0, Python +7.0, JIT compiler +4.0"
    assert lines[-1] == "shedding, most beyond plain: JIT compiler +25.0, Python +7.0, listener bus +0.0"
