"""Repeat a measurement over seeds, on as many cores as this process may use."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")


def for_each(seeds: Iterable[int], measure: Callable[[int], Found]) -> list[Found]:
    """What `measure`, a function of a module, finds for each seed, in the order of the seeds.

    Everything follows from the seed, so the results do not depend on the number of cores. Processes are started afresh: a
    copy of this one would also hold copies of its threads' locks.
    """
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers == 1:
        return [measure(seed) for seed in seeds]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(measure, seeds))
