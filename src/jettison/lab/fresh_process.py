"""Runs a function in a process of its own: a fresh interpreter and, once it starts Spark, a fresh JVM."""

from __future__ import annotations

import faulthandler
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

from jettison.core.interruption import leave_it_to_the_parent
from jettison.errors import JettisonError, refuse

_Returned = TypeVar("_Returned")


def in_fresh_process(within_s: float, function: Callable[..., _Returned], *given: Any, **named: Any) -> _Returned:
    """What a function of a module returns or raises; its process is ended, with a traceback, after `within_s`.

    >>> from math import sqrt
    >>> in_fresh_process(60.0, sqrt, 4.0)
    2.0
    """
    begin = partial(_begin, within_s)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=begin) as pool:
        try:
            return pool.submit(function, *given, **named).result()
        except BrokenProcessPool as error:
            hint = "its own message, if it had one, stands above"
            refuse(
                f"a process that ends well within {within_s:g} s", "none", hint=hint, error=JettisonError, cause=error
            )


def _begin(within_s: float) -> None:
    faulthandler.dump_traceback_later(within_s, exit=True)
    leave_it_to_the_parent()
