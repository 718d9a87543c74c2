"""What a streaming query has written to its folder of files, and nothing that it has not committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq


def committed_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the files in the sink's log; a query that was killed leaves others, whole and broken, beside them."""
    return pa.concat_tables([pq.read_table(path) for path in _committed_files(folder)]).to_pylist()


def _committed_files(folder: Path) -> list[Path]:
    log = sorted((path for path in (folder / "_spark_metadata").iterdir() if path.name[0].isdigit()), key=_batch)
    compacted = [n for n, path in enumerate(log) if path.suffix == ".compact"]
    log = log[compacted[-1] :] if compacted else log  # it holds all that came before it
    entries = [json.loads(line) for path in log for line in path.read_text().splitlines()[1:]]
    return [Path(unquote(urlparse(entry["path"]).path)) for entry in entries]


def _batch(path: Path) -> int:
    return int(path.name.removesuffix(".compact"))
