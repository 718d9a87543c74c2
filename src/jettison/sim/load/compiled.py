"""Compile inner loops where numba is installed; without it they run as plain Python, slower and to the same result."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

HAVE_COMPILER = importlib.util.find_spec("numba") is not None
"""Whether five thousand runs are a matter of seconds."""


def compiled(function: Function) -> Function:
    """The function, compiled on first use if that is possible."""
    if not HAVE_COMPILER:
        return function
    import numba  # only here: it takes a second to import

    return cast(Function, numba.njit(cache=True, nogil=True)(function))
