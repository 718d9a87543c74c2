"""Which cases run, with what load, and what is left out where there is no Kafka. Starts no Spark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from jettison.bench import harm
from jettison.bench.harm_case import Case
from jettison.demo.schedule import Phase
from jettison.errors import InvalidSetting, JettisonError, Unsupported


@pytest.fixture
def measured() -> list[Case]:
    """Cases by which capacities were measured."""
    return []


@pytest.fixture
def ran(measured: list[Case], monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Cases that ran, on a query that processes 1,000 rows/s and keeps all that it sees."""
    ran: list[Case] = []

    @contextmanager
    def broker() -> Iterator[str]:
        yield "127.0.0.1:1"

    def batches(case: Case, rows_per_s: float) -> list[dict[str, Any]]:
        header = {**case.to_dict(), "query_started_s": 0.0, "feed_started_s": 0.0, "ended_s": case.duration_s}
        counts = {"rows": round(rows_per_s), "seen": 10, "kept": 10, "exact": True}
        times = {"duration_ms": {"triggerExecution": 1000.0}}
        return [
            header | {"feed_late_s": 0.0, "load_average": 1.0},
            *(
                counts | times | {"started_epoch_s": s, "oldest_arrival_s": s - 1.0, "newest_arrival_s": float(s)}
                for s in range(1, int(case.duration_s))
            ),
        ]

    def run_cold(case: Case, out: Path, *, address: str | None) -> list[dict[str, Any]]:
        ran.append(case)
        return batches(case, case.phases[0].rows_per_s)

    monkeypatch.setattr(harm, "run_cold", run_cold)

    def measure_warm(case: Case, out: Path, *, address: str | None) -> list[dict[str, Any]]:
        measured.append(case)
        return batches(case, 1000.0)

    monkeypatch.setattr(harm, "measure_warm", measure_warm)
    monkeypatch.setattr(harm, "broker", broker)
    monkeypatch.setattr(harm, "jars", lambda bundle: [])
    monkeypatch.setattr(harm.java, "require_java", lambda: None)
    return ran


def test_every_case_runs_under_the_load_that_it_names(ran: list[Case]) -> None:
    results = [result for found in harm.harm(Console(file=io.StringIO())) for result in found]
    rates = {case.name: case.phases[0].rows_per_s for case in ran}
    assert list(rates) == list(harm.TRIALS)
    assert [rates[name] for name in ("files-below", "kafka-3x", "files-10x", "fixed-cost")] == [500, 3000, 10_000, 100]
    assert all(result.required and result.bar for result in results)


def test_each_capacity_is_measured_once_and_in_a_topic_of_its_own(ran: list[Case], measured: list[Case]) -> None:
    list(harm.harm(Console(file=io.StringIO())))
    topics = [case.name for case in [*ran, *measured] if case.source == "kafka"]
    assert len(set(topics)) == len(topics)
    assert len({(case.source, case.name) for case in measured}) == len(measured) == 7


def test_keeping_all_meets_every_bar_on_what_is_dropped(ran: list[Case]) -> None:
    results = [result for found in harm.harm(Console(file=io.StringIO())) for result in found]
    assert all(result.holds for result in results if "dropped" in result.name)


def test_no_case_arrives_for_longer_than_it_may_take() -> None:
    assert all(trial.case.duration_s <= 200.0 for trial in harm.TRIALS.values())


def test_one_case_runs_alone(ran: list[Case]) -> None:
    list(harm.harm(Console(file=io.StringIO()), "fixed-cost"))
    assert [case.name for case in ran] == ["fixed-cost"]


def test_an_unknown_case_is_refused(ran: list[Case]) -> None:
    with pytest.raises(InvalidSetting, match="did you mean 'files-3x'"):
        list(harm.harm(Console(file=io.StringIO()), "file-3x"))
    assert ran == []


def test_without_kafka_its_cases_are_left_out_with_one_line(ran: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(bundle: object) -> list[Path]:
        raise Unsupported("no mvn on PATH")

    monkeypatch.setattr(harm, "jars", none)
    console = Console(file=io.StringIO(), width=200)
    list(harm.harm(console))
    assert {case.source for case in ran} == {"files"}
    assert console.file.getvalue().count("left out: no mvn on PATH") == 1  # type: ignore[attr-defined]


def test_a_case_that_fails_is_a_bar_missed_and_the_others_run(ran: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    well = harm.run_cold

    def run_cold(case: Case, out: Path, *, address: str | None) -> list[dict[str, Any]]:
        if case.name == "fixed-cost":
            raise JettisonError("it ended badly")
        return well(case, out, address=address)

    monkeypatch.setattr(harm, "run_cold", run_cold)
    results = [result for found in harm.harm(Console(file=io.StringIO())) for result in found]
    assert [result.holds for result in results if "fixed-cost" in result.name] == [False]
    assert len(ran) == len(harm.TRIALS) - 1


def test_a_case_survives_the_passage_to_another_process() -> None:
    case = Case("a", "files", "fares", (Phase(1.0, 2.0), Phase(3.0, 4.0)), 5.0, wild_one_in=7)
    assert Case.from_dict(case.to_dict()) == case
