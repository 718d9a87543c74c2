"""Kill -9 while workers learn: what they learned is known to the next run, and no row is lost, doubled or forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import jettison as jt
from committed import committed_rows
from driver_process import kill_when, start_driver
from jettison.costs.cost_book import HASH_SEED, CostBook, costs_folder
from jettison.costs.cost_hashing import SharedHashes

FILES, ROWS_PER_FILE = 60, 40


@pytest.mark.long
def test_kill_while_two_workers_learn_loses_neither_costs_nor_rows(spark: SparkSession, tmp_path: Path) -> None:
    # A function of a function travels to the workers as it is; they could not import this module.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As fast as it can: what the next run knows of costs is not its own."""
        for batch in batches:
            yield pa.record_batch({"id": batch["id"], "worker": pa.array([0] * batch.num_rows, pa.int64())})

    (tmp_path / "in").mkdir()
    for file in range(FILES):
        numbers = range(ROWS_PER_FILE * file, ROWS_PER_FILE * (file + 1))
        rows = [{"id": number, "key": "dear" if number % 10 == 0 else "cheap"} for number in numbers]
        (tmp_path / "in" / f"{file:03d}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    checkpoint = tmp_path / "checkpoint"
    ledger = jt.Ledger(checkpoint / "jettison" / "ledger")
    kill_when(start_driver("load_driver", tmp_path, str(tmp_path)), lambda: ledger.totals("function").batches >= 4)
    at_death = ledger.totals("function")
    assert at_death.batches < FILES // 2
    assert len({row["worker"] for row in committed_rows(tmp_path / "out")}) >= 2

    learned = CostBook.load(costs_folder(checkpoint), SharedHashes(2, 2048, seed=HASH_SEED))
    assert learned.costs.rows_learned >= at_death.kept
    again = jt.load_aware(work, key="key", max_wait="1 hour", checkpoint=checkpoint)
    before_any_row = again.status()
    assert before_any_row.rows_seen == 0
    assert before_any_row.costliest == learned.costliest
    assert before_any_row.costliest[0].key == "dear"
    assert before_any_row.costliest[0].mean_s >= 0.019  # a busy machine makes sleeps longer, never shorter
    assert again._book.costs.rows_learned >= at_death.kept

    rows = spark.readStream.schema("id long, key string").json(str(tmp_path / "in"))
    writer = again.map(rows, "id long, worker long").writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    again.close()
    assert sorted(row["id"] for row in committed_rows(tmp_path / "out")) == list(range(FILES * ROWS_PER_FILE))
    batches = [record["batch_id"] for record in ledger.records("function")]
    assert len(batches) == len(set(batches)), "a batch is on record twice"
    # At most the batch that had committed when the driver died, of which the next one's tasks had not yet told.
    missing = set(range(max(batches) + 1)) - set(batches)
    assert len(missing) <= 1
    totals = ledger.totals("function")
    assert totals.seen == totals.kept == (FILES - 2 * len(missing)) * ROWS_PER_FILE
