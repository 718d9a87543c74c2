"""All workloads by name."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jettison.lab.prove.workload import Workload
from jettison.lab.prove.workloads import nexmark, real, taxi


def all_workloads(console: Console | None = None) -> dict[str, Workload]:
    """Those that can be run here, in the order in which they are; real streams that are not there are named."""
    if console is not None and (gone := real.missing()):
        names = ", ".join(Path(one).parent.name for one in gone)
        console.print(f"  left out, since JETTISON_DATA names no folder with them: {names}", highlight=False)
    return {one.name: one for one in (*taxi.workloads(), *nexmark.workloads(), *real.workloads())}


def every_name() -> list[str]:
    """Names of all workloads, those included whose stream is not there."""
    return [*(one.name for one in (*taxi.workloads(), *nexmark.workloads())), *real.NAMES]
