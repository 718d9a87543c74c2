"""Joins and borrowed estimates as the report measures them; real data only where it is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jettison.lab.reproduce.concept.borrowing import run_borrowing
from jettison.lab.reproduce.concept.joins import run_joins
from jettison.lab.reproduce.concept.streams import real_streams, zipf


def test_the_hybrid_join_keeps_its_rows_and_errs_least():
    by_way = {outcome.way: outcome for outcome in run_joins([0.05], draws=30, seed=2)}
    assert by_way["hybrid"].processed == pytest.approx(0.05, rel=0.05)
    assert by_way["hybrid"].error < by_way["independent only"].error < by_way["consistent hash only"].error


def test_borrowing_helps_where_rows_are_few():
    made = run_borrowing(zipf(3, 3, rows=20_000, groups=300), 0.05, seed=3)
    assert made.error < made.direct_error
    assert made.coverage > 0.9
    assert made.shed_groups > 0


def test_without_the_option_there_is_no_real_data(monkeypatch):
    monkeypatch.delenv("JETTISON_DATA", raising=False)
    assert real_streams(3) == []


def test_real_streams_are_read_where_the_option_points(monkeypatch, tmp_path: Path):
    folder = tmp_path / "flights_2001_3m"
    folder.mkdir()
    rows = 200_000
    numbers = np.arange(rows)
    table = {"origin": np.array(["A", "B"])[numbers % 2], "destination": np.array(["C", "D", "E"])[numbers % 3]}
    table |= {"distance": numbers.astype(np.int16), "delay": (numbers % 7 - 3).astype(np.int16)}
    pq.write_table(pa.table(table), folder / "flights_2001h1.parquet")
    monkeypatch.setenv("JETTISON_DATA", str(tmp_path))
    origins, routes = real_streams(5)
    for stream in (origins, routes):
        assert [window.rows for window in stream.windows] == [100_000, 100_000]
    assert (origins.group_count, routes.group_count) == (2, 6)
    assert routes.windows[0].values.min() == 0.0
