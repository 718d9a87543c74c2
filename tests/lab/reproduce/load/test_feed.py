from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jettison.lab.reproduce.load.feed import Feed, busy_wait


def test_rows_land_once_each_with_the_time_at_which_they_were_due(tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", np.arange(50) % 3, np.full(50, 100), np.linspace(0.0, 0.3, 50))
    feed.warm_up()
    feed.start()
    feed.join()
    landed = pa.concat_tables(pq.read_table(path) for path in sorted(feed.folder.glob("*.parquet")))
    real = landed.filter(pa.array(landed["row"].to_numpy() >= 0)).sort_by("row")
    assert real["row"].to_pylist() == list(range(50))
    assert np.allclose(real["at"].cast(pa.int64()).to_numpy() / 1e6, feed.arrivals_s(), atol=1e-5)
    assert not list(feed.folder.glob(".*"))


def test_the_function_waits_as_long_as_a_row_costs() -> None:
    batch = pa.record_batch({"row": [1, 2], "cost_us": [3000, 1000]})
    (result,) = list(busy_wait(iter([batch])))
    first, second = result["started"].to_pylist()
    assert result["row"].to_pylist() == [1, 2]
    assert second - first >= 0.0029
