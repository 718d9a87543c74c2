"""How a run is read off a query's progress and its ledger. Starts no Spark: the query is made up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from demo_runs import PHASES, START_S, run_with
from jettison.core.stats import PointStats, Stats
from jettison.errors import JettisonError
from jettison.lab.demo import experiment
from jettison.lab.demo.experiment import Batch
from jettison.runtime.ledger import Ledger


@dataclass
class Progress:
    """As much of Spark's progress event as is read."""

    batchId: int
    numInputRows: int
    started_s: float = START_S
    duration_ms: int = 1500
    runId: str = "run"
    observedMetrics: dict[str, Any] = field(default_factory=dict)
    eventTime: dict[str, str] = field(default_factory=dict)
    sources: tuple[Any, ...] = ()
    sink: Any = field(default_factory=lambda: SimpleNamespace(description="NoopTable"))

    @property
    def timestamp(self) -> str:
        return datetime.fromtimestamp(self.started_s, UTC).isoformat().replace("+00:00", "Z")

    @property
    def batchDuration(self) -> int:
        return self.duration_ms

    @property
    def durationMs(self) -> dict[str, int]:
        return {"triggerExecution": self.duration_ms}


@dataclass
class Query:
    recentProgress: list[Progress]

    @property
    def lastProgress(self) -> Progress | None:
        return self.recentProgress[-1] if self.recentProgress else None


def test_batches_follow_each_other_through_the_feed_and_empty_ones_are_left_out() -> None:
    query = Query([Progress(0, 100), Progress(1, 0), Progress(2, 50, START_S + 2.0, 500)])
    events = experiment.Progress(query, retained=100).gather()  # type: ignore[arg-type]
    first, second = experiment._batches(events, None)
    assert first == Batch(0, START_S, START_S + 1.5, 0, 100, 1.0)
    assert second == Batch(2, START_S + 2.0, START_S + 2.5, 100, 150, 1.0)


class TestProgress:
    KEPT = 100

    def test_more_batches_than_spark_keeps_are_gathered_while_they_run(self) -> None:
        query = Query([])
        progress = experiment.Progress(query, retained=self.KEPT)  # type: ignore[arg-type]
        for number in range(300):
            query.recentProgress = [*query.recentProgress, Progress(number, number % 2)][-self.KEPT :]
            progress.look()
        assert [event.batchId for event in progress.gather()] == list(range(1, 300, 2))

    def test_a_look_reads_all_that_spark_keeps_only_now_and_then(self) -> None:
        reads = []

        class Counted(Query):
            @property
            def lastProgress(self) -> Progress:
                return Progress(len(reads), 1)

            def __getattribute__(self, name: str) -> Any:
                reads.extend([name] * (name == "recentProgress"))
                return super().__getattribute__(name)

        progress = experiment.Progress(Counted([]), retained=self.KEPT)  # type: ignore[arg-type]
        for _ in range(20):
            progress.look()
        assert not reads

    def test_an_event_that_spark_forgot_before_a_look_is_an_error_and_not_a_gap(self) -> None:
        query = Query([Progress(0, 10), Progress(1, 0)])
        progress = experiment.Progress(query, retained=self.KEPT)  # type: ignore[arg-type]
        progress.gather()
        query.recentProgress = [Progress(1, 10), Progress(2, 10)]  # the first of that number was of a query that waited
        assert [event.batchId for event in progress.gather()] == [0, 1, 2]
        query.recentProgress = [Progress(4, 10)]
        with pytest.raises(JettisonError, match="batch 2, and then 4"):
            progress.gather()


def test_a_batch_is_sampled_from_its_first_row_to_its_last() -> None:
    wide, narrow = Batch(0, 0.0, 1.0, 500, 100_500, 1.0), Batch(0, 0.0, 1.0, 7, 10, 1.0)
    assert (wide.sample()[0], wide.sample()[-1], len(wide.sample())) == (500, 100_499, 200)
    assert narrow.sample().tolist() == [7, 8, 9]


def test_latency_counts_from_a_rows_own_arrival() -> None:
    run = run_with([1.0] * 5)
    batch = Batch(0, START_S, START_S + 4.0, 0, 101, 1.0)  # 100 rows arrive in each of the first seconds
    latencies = batch.latencies(run.landing)
    assert (latencies[0], latencies[-1]) == (pytest.approx(4.0), pytest.approx(3.0))
    assert (np.diff(latencies) <= 0).all()


@pytest.mark.parametrize(
    ("elapsed_s", "rate"), [(0.0, 100), (9.9, 100), (10.0, 600), (39.9, 600), (45.0, 100), (50.0, 0)]
)
def test_the_rate_shown_is_that_of_the_phase(elapsed_s: float, rate: float) -> None:
    assert experiment._rate_at(PHASES, elapsed_s) == rate


class TestMeter:
    @pytest.fixture(autouse=True)
    def now(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(experiment.time, "time", lambda: START_S + 20.0)

    def meter(self, *progress: Progress) -> tuple[experiment._Meter, Query]:
        query, landing = Query(list(progress)), run_with([]).landing
        feed = SimpleNamespace(landing=landing, schedule=landing.schedule, started_s=START_S, phases=PHASES)
        return experiment._Meter("x", feed, query), query  # type: ignore[arg-type]

    def test_the_latency_shown_is_the_age_of_the_oldest_row_without_an_answer(self) -> None:
        meter, query = self.meter()
        status = SimpleNamespace(keep_fraction={"rides": 0.9}, rows_by_point={"rides": (500, 200)}, cause="why")
        moment = meter.moment(SimpleNamespace(status=lambda: status))  # type: ignore[arg-type]
        assert (moment.latency_s, moment.elapsed_s, moment.total_s) == (pytest.approx(20.0), pytest.approx(20.0), 50.0)
        assert (moment.arrival_rows_per_s, moment.kept_fraction, moment.note) == (600, 0.4, "why")
        query.recentProgress.append(Progress(0, 500))  # the rows of the first 5 s
        assert meter.moment(None).latency_s == pytest.approx(15.0)
        assert meter.moment(None).latency_s == pytest.approx(15.0), "a batch counts once"

    def test_the_share_shown_is_what_the_last_batches_kept_and_not_what_the_next_plan_says(self) -> None:
        meter, _ = self.meter()
        shown = []
        for counted in [{}, {"rides": (1000, 1000)}, {"rides": (1000, 1000)}, {"rides": (3000, 1500)}]:
            status = SimpleNamespace(keep_fraction={"rides": 0.52}, rows_by_point=counted, cause="why")
            shown.append(meter.moment(SimpleNamespace(status=lambda status=status: status)).kept_fraction)  # type: ignore[arg-type, misc]
        assert shown == [1.0, 1.0, 1.0, 0.25]

    def test_batches_between_two_looks_are_counted_too(self) -> None:
        meter, query = self.meter(Progress(0, 100))
        meter.moment(None)
        query.recentProgress += [Progress(1, 200), Progress(2, 200)]
        assert meter.moment(None).latency_s == pytest.approx(15.0)

    def test_nobody_waits_once_all_rows_are_answered(self) -> None:
        meter, _ = self.meter(Progress(0, 20_000))
        assert meter.moment(None).latency_s == 0.0


def test_kept_fractions_come_from_exact_counts_in_the_ledger_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for number, point in enumerate([PointStats(100, 25), PointStats(100, 90, exact=False)]):
        ledger.batch(Stats(number, START_S, 1.0, {"rides": point}, plan_version=1), latency_s=None)
    batches = experiment._batches([Progress(number, 100) for number in range(3)], ledger)  # type: ignore[misc]
    counted, estimated, unknown = [batch.kept_fraction for batch in batches]
    assert counted == 0.25
    assert math.isnan(estimated)
    assert math.isnan(unknown)
