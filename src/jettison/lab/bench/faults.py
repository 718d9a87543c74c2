"""`jettison bench faults`: seeded runs in which much goes wrong at once, and what was promised all the same."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jettison.errors import Unsupported
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.fault_judge import PROMISES, Verdict, judge
from jettison.lab.bench.fault_run import drivers, run
from jettison.lab.bench.fault_scenario import FAULTS, Scenario, scenario
from jettison.lab.bench.kafka import Broker, running_broker
from jettison.lab.bench.result import Result

_ON_FILES, _ON_KAFKA = "files", "kafka"
_LEAST_RUNS = 100.0
"""With seeds of their own: one that runs again counts once here."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one seed came to: what befell the run, and by promise what was looked at and what speaks against it."""

    seed: int
    happened: Sequence[str]
    looked_at: Mapping[str, int]
    broken: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, one: Scenario, verdict: Verdict) -> Judged:
        broken = {promise: words for promise, words in verdict.broken.items() if words}
        return cls(one.seed, verdict.happened, dict(verdict.looked_at), broken)


def faults(console: Console, only: str | None, seeds: Sequence[int]) -> Iterator[list[Result]]:
    """How often a promise was broken: in each run, one for each seed, and then by promise and by fault.

    Without Kafka, or with `--only files`, all runs read files; with `--only kafka` those run that are on a broker.
    """
    kinds = chosen({_ON_FILES: (False,), _ON_KAFKA: (True,)}, only)
    with ExitStack() as stack:
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="jettison-bench-", ignore_cleanup_errors=True))
        )
        broker = _broker(stack, console) if _ON_KAFKA in kinds else None
        started = stack.enter_context(drivers(scratch / "drivers", with_kafka=broker is not None))
        judged: list[Judged] = []
        not_run: list[int] = []
        for seed in seeds:
            one = scenario(seed, with_kafka=broker is not None)
            if only == _ON_KAFKA and not one.on_kafka:
                continue
            try:
                verdict = judge(run(one, scratch / str(seed), started, broker))
            except Exception as error:  # a driver that does not start must not take with it what others have shown
                console.print(f"  {seed}: not run: {error}", highlight=False, markup=False)
                started.lost()
                not_run.append(seed)
                about = {**asdict(one), "not_run": str(error)[-500:]}
                yield [Result(f"seed {seed}", math.nan, "", at_most=0.0, config=about, required=True)]
                continue
            judged.append(Judged.of(one, verdict))
            _say(console, one, verdict)
            yield [_of_run(one, verdict)]
    yield results(judged, not_run)


def _broker(stack: ExitStack, console: Console) -> Broker | None:
    try:
        return stack.enter_context(running_broker())
    except Unsupported as error:
        console.print(f"  all runs read files: {error}", highlight=False)
        return None


def _of_run(one: Scenario, verdict: Verdict) -> Result:
    judged = Judged.of(one, verdict)
    config = {**asdict(one), "dealt": one.faults, **asdict(judged)}
    count, looked_at = sum(map(len, judged.broken.values())), sum(judged.looked_at.values())
    return Result(f"seed {one.seed}", float(count), f"of {looked_at:,}", at_most=0.0, config=config, required=True)


def merged(rows: Iterable[Mapping[str, Any]]) -> list[Result]:
    """The results of several commands, each over some seeds, as if one had run them all.

    Of a seed that ran several times every run counts: what was broken once stays broken.
    """
    names = ("seed", "happened", "looked_at", "broken")
    of_seeds = [row["config"] for row in rows if "seed" in row["config"]]
    judged = [Judged(*(config[name] for name in names)) for config in of_seeds if "looked_at" in config]
    return results(judged, [config["seed"] for config in of_seeds if "not_run" in config])


def results(judged: Sequence[Judged], not_run: Iterable[int] = ()) -> list[Result]:
    """A result for each promise, how many seeds ran and which never did, and one for each fault that befell a run."""
    found = []
    for promise in PROMISES:
        broken = [words for one in judged for words in one.broken.get(promise, ())]
        looked_at = sum(one.looked_at.get(promise, 0) for one in judged)
        of = {"runs": len(judged), "looked_at": looked_at, "broken": broken[:20]}
        # Nothing looked at proves nothing.
        value = float(len(broken)) if looked_at else math.nan
        found.append(Result(promise, value, f"of {looked_at:,}", at_most=0.0, config=of, required=True))
    seeds = {one.seed for one in judged}
    never = sorted({*not_run} - seeds)
    found.append(Result("runs", float(len(seeds)), "seeds", at_least=_LEAST_RUNS))
    found.append(
        Result("seeds that did not run", float(len(never)), "", at_most=0.0, config={"seeds": never}, required=True)
    )
    runs = Counter(fault for one in judged for fault in one.happened)
    wrong = Counter(fault for one in judged for fault in one.happened if one.broken)
    for fault in FAULTS:
        if runs[fault]:
            name = f"runs with a broken promise: {fault}"
            found.append(Result(name, float(wrong[fault]), f"of {runs[fault]}", at_most=0.0, required=True))
    return found


def _say(console: Console, one: Scenario, verdict: Verdict) -> None:
    where = " on Kafka" if one.on_kafka else " on executors" if one.on_cluster else ""
    what = f"{one.policy}, {'answers' if one.answers else 'rows'}{where}"
    console.print(f"  {one.seed}: {what}: {'; '.join(verdict.happened)}", highlight=False)
    for promise, words in verdict.broken.items():
        for detail in words[:3]:
            console.print(f"    {promise}: {detail[:500]}", highlight=False, markup=False)
