"""Queries of an experiment that run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

from pyspark.sql.streaming.query import StreamingQuery

from jettison.lab.reproduce.window.streams import side_by_side


def test_queries_side_by_side_run_at_the_same_time_in_folders_of_their_own(tmp_path: Path) -> None:
    all_running = threading.Barrier(3, timeout=120)  # broken, and so an error, where one waits for another to end
    folders: set[Path] = set()

    def variant(folder: Path) -> Callable[[], StreamingQuery]:
        folders.add(folder)

        def run() -> StreamingQuery:
            all_running.wait()
            return Mock(spec=StreamingQuery)

        return run

    assert isinstance(side_by_side([variant] * 3)(tmp_path)(), StreamingQuery)
    assert folders == {tmp_path / "0", tmp_path / "1", tmp_path / "2"}
