"""Compile inner loops where numba is installed; without it they run as plain Python, slower and to the same result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    import numba
except ImportError:
    numba = None

HAVE_COMPILER = numba is not None
"""Whether five thousand runs are a matter of seconds."""


def compiled(function: Function) -> Function:
    """The function, compiled on first use if that is possible."""
    if numba is None:
        return function
    fast: Function = numba.njit(cache=True, nogil=True)(function)
    return fast
