"""Windows that count rows, on Spark: complete or not there at all."""

from __future__ import annotations

import itertools
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn, Unsupported

KEYS = ("a", "b", "c")
START = 1_767_225_600


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """`transformWithState` keeps its state in RocksDB only."""
    name = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield
    spark.conf.unset(name)


def land(folder: Path, files: range, rows_per_file: int) -> dict[str, list[float]]:
    """Write files of rows and return all of them by key, in order."""
    folder.mkdir(exist_ok=True)
    by_key: dict[str, list[float]] = defaultdict(list)
    for file in files:
        lines = []
        for i in range(rows_per_file):
            number = file * rows_per_file + i
            key = KEYS[(number * 7 + number // 5) % 3]
            by_key[key].append(float(number))
            lines.append(json.dumps({"key": key, "number": number}))
        path = folder / f"{file:03d}.json"
        path.write_text("\n".join(reversed(lines)) + "\n")  # order within a batch is ours to restore
        os.utime(path, (START + file, START + file))  # files are taken in the order of their age
    return by_key


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("key string, number long").option("maxFilesPerTrigger", 1).json(str(folder))


@pytest.mark.usefixtures("rocksdb")
@pytest.mark.parametrize(("size", "slide"), [(5, 5), (6, 2)])
def test_delivered_windows_are_complete_and_gaps_bounded_across_a_restart(
    spark: SparkSession, tmp_path: Path, size: int, slide: int
) -> None:
    # The share changes while the query runs; where none is known, nothing is dropped.
    share = F.when(F.col("number") >= 200, 0.3).when(F.col("number") >= 80, 0.6)
    by_key: dict[str, list[float]] = defaultdict(list)
    found: dict[str, dict[int, list[float]]] = defaultdict(dict)

    def collect(batch: DataFrame, number: int) -> None:
        for row in batch.collect():
            assert row.window not in found[row.key]
            found[row.key][row.window] = row["values"]

    for files in (
        range(0, 2),
        range(2, 4),
    ):  # windows that are open at the restart, kept or dropped, stay what they are
        for key, more in land(tmp_path / "in", files, rows_per_file=60).items():
            by_key[key] += more
        answers = jt.count_windows(
            stream(spark, tmp_path / "in"),
            key="key" if slide == size else F.lower("key").alias("key"),
            order="number",
            value=F.col("number") * 1,
            size=size,
            slide=slide,
            max_gap=2,
            drop_share=share,
        )
        query = answers.writeStream.outputMode("append").foreachBatch(collect).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    missing = 0
    assert answers.columns == ["key", "window", "values"]
    for key, all_rows in by_key.items():
        whole = {start // slide: all_rows[start : start + size] for start in range(0, len(all_rows) - size + 1, slide)}
        assert found[key] == {n: whole[n] for n in found[key]}
        assert {n for n, rows in whole.items() if rows[0] < 80} <= set(found[key])
        there = [n in found[key] for n in sorted(whole)]
        missing += there.count(False)
        assert max((len(list(run)) for kept, run in itertools.groupby(there) if not kept), default=0) <= 2
    assert missing > 0


def test_wrong_arguments_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    land(tmp_path / "in", range(1), rows_per_file=1)
    rows = stream(spark, tmp_path / "in")
    arguments = {"key": "key", "order": "number", "value": "number", "size": 5, "max_gap": 2}
    with pytest.raises(MissingColumn, match="value"):
        jt.count_windows(rows, **(arguments | {"value": "nothing"}))
    with pytest.raises(InvalidSetting, match="`value` must be a column of the stream"):
        jt.count_windows(rows, **(arguments | {"value": F.col("nothing")}))
    with pytest.raises(InvalidSetting, match="max_gap"):
        jt.count_windows(rows, **(arguments | {"max_gap": 0}))
    with pytest.raises(InvalidSetting, match="slide"):
        jt.count_windows(rows, **(arguments | {"slide": 6}))
    with pytest.raises(InvalidSetting, match="slide"):
        jt.count_windows(rows, **(arguments | {"slide": 0}))
    with pytest.raises(InvalidSetting, match=r"drop_share.*not a percentage"):
        jt.count_windows(rows, **arguments, drop_share=60)
    with pytest.raises(InvalidInput, match="streaming"):
        jt.count_windows(spark.range(3), **arguments)
    with pytest.raises(Unsupported, match=r"RocksDB.*spark\.conf\.set"):
        jt.count_windows(rows, **arguments)
