"""Work on all cores. Everything follows from seeds, so that results do not depend on how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from jettison.core.interruption import leave_it_to_the_parent

Item = TypeVar("Item")
Found = TypeVar("Found")

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(most: int = CORES) -> ProcessPoolExecutor:
    """Processes that are started afresh: a copy of this one would also hold copies of its threads' locks."""
    return ProcessPoolExecutor(min(most, CORES), get_context("spawn"), leave_it_to_the_parent)


def for_each(items: Iterable[Item], function: Callable[[Item], Found]) -> list[Found]:
    """What a function of a module finds for each item, in the order of the items."""
    with processes() as pool:
        return list(pool.map(function, items))


def for_each_compiled(items: Iterable[Item], function: Callable[[Item], Found]) -> list[Found]:
    """The same in threads, for any function that spends its time in compiled loops, which let other threads run."""
    with ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(function, items))
