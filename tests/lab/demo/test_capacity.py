"""How the capacity is found from what batches took. Starts no Spark: queries and the feed are made up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from jettison.lab.demo import capacity


def progress(rows: int, seconds: float) -> SimpleNamespace:
    return SimpleNamespace(numInputRows=rows, durationMs={"triggerExecution": round(seconds * 1e3)})


def test_the_median_of_the_batches_after_the_first_two_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    landed: dict[str, Any] = {}
    monkeypatch.setattr(capacity, "land_all", lambda folder, rows, **how: landed.update(rows=rows, **how))
    monkeypatch.setattr(capacity, "raw_rides", lambda spark, folder, **how: how)
    # Two that warm up, one without rows, three of 100, 200 and 1000 rows a second.
    batches = [(400, 8.0), (400, 6.0), (0, 0.1), (400, 4.0), (400, 2.0), (400, 0.4)]
    monkeypatch.setattr(capacity, "fares", lambda raw, folder, bound_s: (Mock(), None))
    monkeypatch.setattr(capacity, "started", lambda writer, runner: query)
    query = SimpleNamespace(awaitTermination=lambda: None, recentProgress=[progress(*batch) for batch in batches])
    found = capacity._throughput(None, tmp_path, 400, 5)  # type: ignore[arg-type]
    assert found == pytest.approx(200.0)
    assert landed == {"rows": 2000, "rows_per_file": 100}


def test_it_is_measured_last_beside_a_feed_at_the_overload_to_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[Any] = []
    answers = iter([50_000.0, 80_000.0, 70_000.0])

    def throughput(spark: object, folder: Path, rows_per_batch: int, batches: int, *, guarded: bool = False) -> float:
        done.append((folder.name, rows_per_batch, guarded))
        return next(answers)

    class Feed:
        def __init__(self, directory: Path, phases: list[Any], **how: object) -> None:
            self.rate = phases[0].rows_per_s

        def __enter__(self) -> None:
            done.append(("feed", self.rate))

        def __exit__(self, *error: object) -> None:
            done.append("feed ends")

    monkeypatch.setattr(capacity, "_throughput", throughput)
    monkeypatch.setattr(capacity, "RideFeed", Feed)
    assert capacity.measure_capacity(None, tmp_path, batch_s=4.0, overload=3.0) == 70_000.0  # type: ignore[arg-type]
    warm_guarded, warm_plain, feed, measured, end = done
    assert warm_guarded[::2] == ("guarded", True)
    assert warm_plain[::2] == ("warm-up", False)
    assert feed == ("feed", 240_000.0)
    assert measured == ("measured", 320_000, False)
    assert end == "feed ends"
