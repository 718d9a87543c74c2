"""Restarts a guarded query and fails if Python threads are left over. Usage: restart_driver.py FOLDER."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from driver_session import session

import jettison as jt


def main(folder: Path) -> None:
    spark = session("local[2]", folder, {})
    stream = spark.readStream.schema("id long").json(str(folder / "in"))

    def once() -> None:
        with jt.Shedder(latency="1 minute", checkpoint=folder / "checkpoint") as shedder:
            shedder.start(shedder.guard(stream, row_id="id").writeStream.format("noop")).processAllAvailable()

    once()
    before = threading.active_count()
    for _ in range(6):
        once()
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [thread.name for thread in threading.enumerate()]
    assert len(left) <= before, f"{before} threads before, now {left}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
