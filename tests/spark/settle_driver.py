"""Settles window by window, to be killed meanwhile. Usage: settle_driver.py CHECKPOINT TO, where `settle_job.py` lies."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from driver_session import session
from rich.console import Console

from jettison.settle.settle_command import named_query, run_reconcile


def main(checkpoint: str, to: str) -> None:
    spark = session("local[2]", Path.cwd(), {})
    query, sources = named_query("settle_job:answers", ["settle_job:source"], None, None)
    session_of = contextlib.nullcontext(spark)
    run_reconcile(Console(), session_of, checkpoint, query, to, sources, part_rows=1, look_rows=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
