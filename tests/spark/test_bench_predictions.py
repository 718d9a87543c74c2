"""What a dry run foresees beside what follows, at a size that takes seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from jettison.lab.bench import predictions, shed_streams


@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "one_partition")
def test_bounds_that_were_foreseen_are_held_against_those_given(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = 12_000
    keys, values = random.integers(0, 4, rows), random.exponential(10.0, rows)
    stream = shed_streams.real(Path("nowhere"), lambda table: table, "1 hour")
    shed_streams.land(tmp_path / "in", (keys, values, np.arange(rows) * 10**6), files=4)
    found = {one.name: one for one in predictions.beside(spark, tmp_path, stream, "UniformDrop", "made up")}
    assert len(found) == 5 * 4, "two figures of bounds and two of errors for each of five answers"
    median = found["made up: avg, median of its bounds, foreseen over given"]
    assert median.config["foreseen"] > 6
    assert median.ratio == pytest.approx(1.0, abs=0.2)
    assert not median.bar, "too few answers to judge it"
    assert 0.1 < found["made up: avg, median of its errors, foreseen over given"].ratio < 10.0
