"""Cases are judged from their records alone. Starts no Spark."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jettison.bench.harm_verdict import bound_holds_from_s, dropped_share, kept_of_ideal, latency_s, rows_per_s


def header(duration_s: float = 10.0) -> dict[str, Any]:
    phases = [{"duration_s": duration_s, "rows_per_s": 100.0}]
    return {"query_started_s": 1000.0, "feed_started_s": 1000.0, "ended_s": 1000.0 + duration_s, "phases": phases}


def batch(at_s: float, took_s: float, arrived: tuple[float, float], kept: int = 100, **more: Any) -> dict[str, Any]:
    oldest_s, newest_s = arrived
    return {
        "started_epoch_s": 1000.0 + at_s,
        "duration_ms": {"triggerExecution": took_s * 1e3},
        "rows": 100,
        "seen": 100,
        "kept": kept,
        "exact": True,
        "oldest_arrival_s": 1000.0 + oldest_s,
        "newest_arrival_s": 1000.0 + newest_s,
        **more,
    }


def test_rows_dropped_are_counted_by_the_start_of_their_batch() -> None:
    records = [header(), batch(1, 1, (0, 1), kept=50), batch(2, 1, (1, 2), kept=90), batch(3, 1, (2, 3))]
    assert dropped_share(records) == pytest.approx(60 / 300)
    assert dropped_share(records, to_s=2.0) == pytest.approx(0.5)
    assert dropped_share(records, from_s=3.0) == 0.0


def test_a_batch_without_an_exact_count_leaves_no_verdict() -> None:
    missing = {key: value for key, value in batch(2, 1, (1, 2)).items() if key not in ("seen", "kept", "exact")}
    assert math.isnan(dropped_share([header(), batch(1, 1, (0, 1)), missing]))
    assert math.isnan(dropped_share([header(), batch(1, 1, (0, 1), exact=False)]))


def test_no_batch_at_all_leaves_no_verdict() -> None:
    assert math.isnan(dropped_share([header()]))
    assert math.isnan(dropped_share([header(), batch(1, 1, (0, 1))], from_s=60.0))


def test_the_share_kept_is_put_beside_the_ideal_one() -> None:
    records = [header(), batch(1, 1, (0, 1), kept=0), batch(21, 1, (20, 21), kept=30)]
    assert kept_of_ideal(records, from_s=20.0, ideal=1 / 3) == pytest.approx(0.9)


def test_latency_is_from_arrival_to_commit_of_rows_that_arrived_once_settled() -> None:
    records = [header(4.0), batch(0, 2, (0, 1)), batch(2, 3, (2, 4))]
    assert latency_s(records, from_s=2.0, quantile=1.0) == pytest.approx(3.0)
    assert latency_s(records, from_s=2.0, quantile=0.5) == pytest.approx(2.0, abs=0.02)


def test_rows_that_still_wait_count_with_their_wait_so_far() -> None:
    assert latency_s([header(), batch(0, 1, (0, 1))], from_s=0.0, quantile=1.0) == pytest.approx(9.0)
    assert latency_s([header()], from_s=0.0, quantile=1.0) == pytest.approx(10.0)


def test_without_a_row_since_then_latency_has_no_verdict() -> None:
    assert math.isnan(latency_s([header(), batch(0, 1, (0, 10))], from_s=20.0))


def test_capacity_comes_from_the_later_batches() -> None:
    batches = [batch(0, 10, (0, 1)), batch(10, 5, (1, 2)), batch(15, 1, (2, 3)), batch(16, 2, (3, 4))]
    assert rows_per_s([header(), *batches]) == pytest.approx(75.0)


def test_the_bound_holds_from_when_the_last_rows_that_break_it_arrived() -> None:
    slow, fast = batch(2, 6, (0, 2)), [batch(at, 1, (at - 1.0, at)) for at in range(9, 21)]
    records = [header(duration_s=20.0), slow, batch(8, 1, (2, 8), rows=10_000), *fast]
    assert 3.0 <= bound_holds_from_s(records, 5.0) <= 6.0
    assert bound_holds_from_s(records, 10.0) == 0.0
    assert bound_holds_from_s(records, 0.5) == math.inf
