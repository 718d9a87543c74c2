"""`jettison bench`: all benchmarks, or one by name."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from jettison import extras, java
from jettison.errors import did_you_mean, refuse
from jettison.lab.bench.check import ROUNDS, as_result, check, stored_ratios
from jettison.lab.bench.result import Result, loaded, save, show
from jettison.lab.experiments import BENCHMARKS, CASES, Experiment, Kind
from jettison.lab.machine import this_machine
from jettison.lab.time_left import seconds_of, time_left

_REPETITIONS, _SEEDS, _RUN_S = 5, range(100), 60.0
"""As usual, and those for which lengths are known."""


def run_bench(
    console: Console,
    *,
    name: str | None = None,
    repetitions: int | None = None,
    json_path: Path | None = None,
    only: str | None = None,
    seeds: Sequence[int] | None = None,
    rivals: Sequence[str] | None = None,
    seconds: float | None = None,
    minutes: float | None = None,
    resume: bool = False,
) -> list[Result]:
    """Run one benchmark, or all but those of hours, print the results and save them.

    Refuses an option that none of them takes.
    """
    if name is not None and name not in BENCHMARKS:
        hint = did_you_mean(name, BENCHMARKS, otherwise="--all runs all of them")
        refuse(f"the benchmark must be one of {', '.join(BENCHMARKS)}", repr(name), hint=hint)
    if repetitions is not None and repetitions < 1:
        hint = "5 alternating runs of each side tell a difference from noise"
        refuse("--repetitions must be at least 1", str(repetitions), hint=hint)
    if only is not None and (name is None or not BENCHMARKS[name].kind.has_cases):
        with_cases = [one.name for one in BENCHMARKS.values() if one.kind.has_cases]
        hint = f"name one of these benchmarks: {', '.join(with_cases)}"
        refuse("--only needs a benchmark of several cases", repr(name) if name else "no benchmark", hint=hint)
    chosen = [one for one in BENCHMARKS.values() if name == one.name or (name is None and one.kind is not Kind.RIVALS)]
    for option, value, kind in (
        ("--seeds", seeds, Kind.SEEDED),
        ("--rivals", rivals, Kind.RIVALS),
        ("--seconds", seconds, Kind.RIVALS),
        ("--minutes", minutes, Kind.RIVALS),
        ("--resume", resume or None, Kind.RIVALS),
    ):
        if value is not None and all(one.kind is not kind for one in chosen):
            takes = ", ".join(one.name for one in BENCHMARKS.values() if one.kind is kind)
            refuse(f"{option} needs the benchmark {takes}", repr(name or "--all"), hint=f"leave {option} out")
    if resume and json_path is None:
        refuse("--resume needs the file to go on with", "no --json", hint="name it with --json FILE")
    repetitions, seeds = repetitions or _REPETITIONS, _SEEDS if seeds is None else seeds
    if any(one.kind.needs_spark for one in chosen):
        extras.require("pyspark", where="`jettison bench`" if name is None else f"`jettison bench {name}`")
        java.require_java()
    results = loaded(json_path) if resume and json_path is not None and json_path.exists() else []
    earlier = [asdict(one) for one in results]

    def add(benchmark: str, found: Sequence[Result]) -> None:
        about = {"benchmark": benchmark, "machine": this_machine()}
        if BENCHMARKS[benchmark].kind is Kind.RIVALS:  # each time, all that there is so far
            again = {one.name for one in found}
            results[:] = [one for one in results if one.name not in again]
        results.extend(replace(one, config={**about, **one.config}) for one in found)
        if json_path is not None:
            save(results, json_path)  # what is measured is not lost should the next one fail

    on_spark = [one for one in chosen if one.kind is Kind.ON_SPARK]
    apart = [one for one in chosen if one.kind is not Kind.ON_SPARK]
    lengths = {one.name: _length_s(one, only, repetitions, len(seeds), seconds) for one in [*on_spark, *apart]}
    at_most = rivals is not None or (only is not None and not _case_length(chosen[0], only))
    with time_left(console, lengths, at_most=at_most) as begin:
        if on_spark:
            from jettison.lab.recorded_session import recorded_session  # only here: the pure ones run without pyspark

            with recorded_session("jettison bench") as spark:
                for one in on_spark:
                    begin(one.name)
                    console.print(f"{one.name} ...", highlight=False)
                    with tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
                        add(one.name, one.load()(spark, Path(scratch), repetitions))
        for one in apart:
            begin(one.name)
            console.print(f"{one.name} ...", highlight=False)
            last: dict[Kind, tuple[Any, ...]] = {Kind.PAIRS: (repetitions,), Kind.SEEDED: (seeds,)}
            last[Kind.RIVALS] = (repetitions, rivals or (), seconds or _RUN_S, minutes, earlier)
            given = () if one.kind is Kind.PURE else (console, only, *last.get(one.kind, ()))
            found = one.load()(*given)
            for of_one_case in [found] if one.kind is Kind.PURE else found:
                add(one.name, of_one_case)
    if results:
        show(results, console)
    if json_path is not None:
        save(results, json_path)
        console.print(f"Results: {json_path}.", highlight=False)
    return results


def _length_s(
    one: Experiment, only: str | None, repetitions: int, seeds: int, seconds: float | None = None
) -> float | None:
    """How long it takes, or at most: a case is no longer than all of them."""
    if one.kind is Kind.RIVALS and only is None:
        return None  # its length is that of each case
    usual_s = seconds_of((_case_length(one, only) if only else "") or one.length)
    if usual_s is None or one.kind in (Kind.PURE, Kind.CASES, Kind.APART):
        return usual_s
    if one.kind is Kind.SEEDED:
        return usual_s * seeds / len(_SEEDS)
    return usual_s * repetitions / _REPETITIONS * (seconds or _RUN_S) / _RUN_S


def _case_length(one: Experiment, only: str | None) -> str:
    """The length of a case, where it is known."""
    cases = CASES.get(one.name, {})
    return cases.get(only or "", cases.get("", ""))


def run_check(
    console: Console,
    path: Path,
    *,
    name: str | None = None,
    only: str | None = None,
    repetitions: int | None = None,
    json_path: Path | None = None,
    **sizes: Any,
) -> list[Result]:
    """Measure the ratios of a file again, round by round, print which are worse, and save that; see `check`.

    `sizes` are those of `run_bench`.
    """
    pairs = 2 if repetitions is None else repetitions
    quiet = Console(quiet=True, force_terminal=False)
    stored = [one for one in stored_ratios(path, name) if only is None or one.case in (None, only)]
    seeds = len(sizes.get("seeds") or _SEEDS)
    rounds = {
        f"{_label(one, case)}, round {number + 1}": _length_s(
            BENCHMARKS[one], case or only, pairs, seeds, sizes.get("seconds")
        )
        if one in BENCHMARKS
        else None
        for one, case in dict.fromkeys((one.benchmark, one.case) for one in stored)
        for number in range(ROUNDS)
    }
    begun: Counter[str] = Counter()

    with time_left(console, rounds, at_most=True) as begin:

        def measure(benchmark: str, case: str | None) -> list[Result]:
            label = _label(benchmark, case)
            begun[label] += 1
            begin(f"{label}, round {begun[label]}")
            console.print(f"{label}, {pairs} pairs ...", highlight=False)
            return run_bench(quiet, name=benchmark, repetitions=pairs, only=case or only, **sizes)

        results = [as_result(one) for one in check(stored, measure)]
    show(results, console)
    if json_path is not None:
        save(results, json_path)
    return results


def _label(benchmark: str, case: str | None) -> str:
    return f"{benchmark}, {case}" if case else benchmark
