from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@dataclass(frozen=True)
class Landed:
    """What a reader finds in a feed's directory, in the order of the files' modification times as Spark reads them."""

    files: list[Path]
    table: pa.Table

    @property
    def rides(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.table["value"].to_pylist()]

    @property
    def arrivals_us(self) -> list[int]:
        return self.table["timestamp"].cast(pa.int64()).to_pylist()


@pytest.fixture
def read_landed() -> Callable[[Path], Landed]:
    def read(directory: Path) -> Landed:
        files = sorted(directory.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        return Landed(files, pa.concat_tables([pq.read_table(path) for path in files]))

    return read
