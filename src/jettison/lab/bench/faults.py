"""`jettison bench faults`: seeded runs in which much goes wrong at once, and what was promised all the same."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from jettison.errors import Unsupported
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.fault_judge import PROMISES, Verdict, judge
from jettison.lab.bench.fault_run import drivers, run
from jettison.lab.bench.fault_scenario import FAULTS, Scenario, scenario
from jettison.lab.bench.kafka import Broker, running_broker
from jettison.lab.bench.result import Result

Judged = tuple[Scenario, Verdict]
_ON_FILES, _ON_KAFKA = "files", "kafka"


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
        for seed in seeds:
            one = scenario(seed, with_kafka=broker is not None)
            if only == _ON_KAFKA and not one.on_kafka:
                continue
            verdict = judge(run(one, scratch / str(seed), started, broker))
            judged.append((one, verdict))
            _say(console, one, verdict)
            yield [_of_run(one, verdict)]
    yield results(judged)


def _broker(stack: ExitStack, console: Console) -> Broker | None:
    try:
        return stack.enter_context(running_broker())
    except Unsupported as error:
        console.print(f"  all runs read files: {error}", highlight=False)
        return None


def _of_run(one: Scenario, verdict: Verdict) -> Result:
    broken = {promise: words for promise, words in verdict.broken.items() if words}
    config = {**asdict(one), "faults": one.faults, "looked_at": dict(verdict.looked_at), "broken": broken}
    count, looked_at = sum(map(len, broken.values())), sum(verdict.looked_at.values())
    return Result(f"seed {one.seed}", float(count), f"of {looked_at:,}", at_most=0.0, config=config, required=True)


def results(judged: Sequence[Judged]) -> list[Result]:
    """A result for each promise, and one for each fault."""
    found = []
    for promise in PROMISES:
        broken = [words for _, verdict in judged for words in verdict.broken[promise]]
        looked_at = sum(verdict.looked_at[promise] for _, verdict in judged)
        of = {"runs": len(judged), "looked_at": looked_at, "broken": broken[:20]}
        # Nothing looked at proves nothing.
        value = float(len(broken)) if looked_at else float("nan")
        found.append(Result(promise, value, f"of {looked_at:,}", at_most=0.0, config=of, required=True))
    runs = Counter(fault for one, _ in judged for fault in one.faults)
    wrong = Counter(fault for one, verdict in judged for fault in one.faults if not verdict.holds)
    for fault in FAULTS:
        if runs[fault]:
            name = f"runs with a broken promise: {fault}"
            found.append(Result(name, float(wrong[fault]), f"of {runs[fault]}", at_most=0.0, required=True))
    return found


def _say(console: Console, one: Scenario, verdict: Verdict) -> None:
    where = " on Kafka" if one.on_kafka else " on executors" if one.on_cluster else ""
    what = f"{one.policy}, {'answers' if one.answers else 'rows'}{where}"
    console.print(f"  {one.seed}: {what}: {'; '.join(one.faults)}", highlight=False)
    for promise, words in verdict.broken.items():
        for detail in words[:3]:
            console.print(f"    {promise}: {detail[:500]}", highlight=False, markup=False)
